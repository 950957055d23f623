// Public: cases from lines, files and suites.
#pragma once

#include "harness/base/data_folder.h"
#include "harness/cases/case.h"
#include "harness/cases/case_file.h"
#include "harness/cases/memory.h"
#include "harness/cases/suites.h"
