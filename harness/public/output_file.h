// Public: files that are whole or not there.
#pragma once

#include "harness/base/output_file.h"
