// Whether everything that changes the disk goes through one place, the room os: only there can a test put a fault.
// Pure; one sentence a fault.
#pragma once

#include <string>
#include <vector>

#include "tests/house/source_tree.h"

namespace headrace::house {

// Lines of headrace/ outside of headrace/os/ that write, rename, make or remove files themselves.
std::vector<std::string> writes_past_the_seam(const std::vector<SourceFile>& files);

}  // namespace headrace::house
