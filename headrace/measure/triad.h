// The roof of a pass over memory: a loop that reads and writes the same streams and computes next to nothing.
// Pure; any thread on disjoint ranges.
#pragma once

#include <cstddef>
#include <vector>

namespace headrace::measure {

// One array: `width` bytes an element.
struct Stream {
  std::byte* data;
  size_t width;  // 2 or 4
};

struct Streams {
  std::vector<Stream> updated;  // read and written in place
  Stream read;                  // only read
  std::vector<Stream> written;  // only written, past the cache
};

// Goes over elements [begin, end), multiples of 32; arrays aligned to 64 bytes. What is updated becomes itself or-ed
// with (read & mask): with mask 0 its bytes stay, which the compiler cannot know. `prefetch`: ask for lines ahead, as
// the AdamW kernel does. Throws InternalError on other bounds.
void triad(const Streams& streams, size_t begin, size_t end, unsigned char mask, bool prefetch);

// Bytes read and written for each element.
size_t bytes_per_element(const Streams& streams);

}  // namespace headrace::measure
