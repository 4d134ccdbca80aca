// Which processor a thread runs on. Any thread.
#pragma once

namespace headrace::os {

// Binds the calling thread to the n-th processor of those it may run on, counted round when there are fewer. The whole
// mask is narrowed, so threads started from it afterwards inherit it. Does nothing where the system refuses.
void pin_this_thread(int nth);

}  // namespace headrace::os
