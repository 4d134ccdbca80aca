// Softmax, cross-entropy and their gradient of one row of logits, in place. Pure; any thread on disjoint spans.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::kernel {

// -log softmax(logits)[target] [nats]; fp32 exponentials after subtracting the row's maximum, summed in double over
// fixed chunks. NaN when a logit is NaN or +Inf. Throws InternalError when target is not an index.
double cross_entropy(std::span<const float> logits, size_t target);

// The same, and logits become scale * (softmax - onehot(target)).
double cross_entropy_backward(std::span<float> logits, size_t target, float scale);

}  // namespace headrace::kernel
