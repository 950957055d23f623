// Public: files that are complete or absent.
#pragma once

#include "harness/base/output_file.h"
