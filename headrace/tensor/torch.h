// What our code below the torch line uses of libtorch, and all that the precompiled header holds: tensors, their
// operators, autograd with functions of our own. <torch/all.h> would add modules, data loaders and JIT, twice the time.
#pragma once

#include <torch/autograd.h>
#include <torch/types.h>
