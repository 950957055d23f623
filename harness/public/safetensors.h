// Public: tensor files.
#pragma once

#include "harness/cases/safetensors.h"
