#include "tests/house/seam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::house {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> faults_of(const std::string& line, const std::string& path = "headrace/store/a.cpp") {
  return writes_past_the_seam({{path, "// first\n" + line + "\n"}});
}

TEST(Seam, WhatWritesIsNamedWithItsLine) {
  for (const char* line :
       {"std::ofstream out(path);", "FILE* file = std::fopen(name, mode);", "  fs::rename(a, b);",
        "std::filesystem::remove_all(path);", "fs::create_directories(path);", "if (::unlink(p) != 0)",
        "  ::rename(a, b);", "return ::pwrite(fd, p, n, at);", "open(path, O_RDWR | O_CLOEXEC)"}) {
    EXPECT_THAT(faults_of(line), ElementsAre(HasSubstr("headrace/store/a.cpp:2"))) << line;
  }
}

TEST(Seam, ReadingAndOtherNamesAreFine) {
  for (const char* line :
       {"std::ifstream in(path);", "fs::exists(path);", "std::erase(names, name);", "queue.remove(first);",
        "open(path, O_RDONLY)", "file.write(bytes);", "// fs::rename(a, b);", "os::remove_tree(path);",
        "say(\"fs::rename(a, b)\");", "writer->write(x);", "fs::remove_cv(x);", "HashedFile::write(bytes) {"}) {
    EXPECT_THAT(faults_of(line), IsEmpty()) << line;
  }
  EXPECT_THAT(faults_of("fs::rename(a, b);", "headrace/os/file_system.cpp"), IsEmpty());
  EXPECT_THAT(faults_of("fs::rename(a, b);", "tests/os/file_test.cpp"), IsEmpty());
}

TEST(Seam, OfTheHouseIsTheOnlyWay) {
  EXPECT_THAT(writes_past_the_seam(read_tree(HEADRACE_SOURCE_DIR, "headrace")), IsEmpty());
}

}  // namespace
}  // namespace headrace::house
