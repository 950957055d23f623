// Public: tensor files, read and written.
#pragma once

#include "harness/cases/safetensors.h"
