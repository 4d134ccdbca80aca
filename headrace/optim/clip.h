// Clipping by the norm of the whole gradient, wherever its parts lie. Pure; any thread.
#pragma once

namespace headrace::optim {

// What every gradient is multiplied with: min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does.
// `max_norm` 0 means no clipping. `squared_norm` is the sum over all parts, so no part is clipped by itself.
float clip_factor(double squared_norm, double max_norm);

}  // namespace headrace::optim
