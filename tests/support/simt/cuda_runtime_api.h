#pragma once
#include "cuda_runtime.h"  // one stand-in for both
