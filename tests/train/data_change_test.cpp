// A run whose training file changes or goes away: while it trains, and before it goes on.
#include <gmock/gmock.h>

#include <functional>

#include "headrace/base/errors.h"
#include "headrace/os/file.h"
#include "headrace/store/list.h"
#include "headrace/store/verify.h"
#include "tests/fault/record.h"
#include "tests/train/tiny_run.h"

namespace headrace::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Change {
  const char* name;
  std::function<void(const fs::path&)> apply;
  const char* says;  // the error of a run that is to go on
};

const std::vector<Change>& changes() {
  static const std::vector<Change> all = {
      {"one byte of the data file changed",
       [](const fs::path& path) {
         std::string text = os::read_file(path);
         text.at(text.find("It is")) = 'i';
         support::write_file(path, text);
       },
       "the training data changed"},
      {"data file cut at a line's end",
       [](const fs::path& path) { fs::resize_file(path, os::read_file(path).find('\n', 300) + 1); },
       "the training data changed"},
      {"data file cut within a line", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); },
       "chat.jsonl:"},
      {"a line appended to the data file",
       [](const fs::path& path) {
         support::write_file(path, os::read_file(path) + "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
       },
       "chat.jsonl:25"},
      {"a record appended to the data file",
       [](const fs::path& path) {
         const std::string text = os::read_file(path);
         support::write_file(path, text + text.substr(0, text.find('\n') + 1));
       },
       "the training data changed"},
      {"data file emptied", [](const fs::path& path) { fs::resize_file(path, 0); }, "nothing to learn in"},
      {"data file removed", [](const fs::path& path) { fs::remove(path); }, "cannot open"},
      {"data file replaced by a folder",
       [](const fs::path& path) {
         fs::remove(path);
         fs::create_directory(path);
       },
       "Is a directory"}};
  return all;
}

class DataChangeTest : public TinyRun {
 protected:
  config::TrainConfig saving(const std::string& out, const std::string& data) {
    config::TrainConfig saving = config(out);
    saving.data = {folder_ / data};
    saving.threads = 1;
    saving.held_out = 0;
    saving.tensorboard = false;
    saving.resume = "auto";
    return saving;
  }
  // A file of its own for each trial.
  std::string copy_of_data(const std::string& folder) {
    fs::create_directories(folder_ / folder);
    fs::copy_file(folder_ / "chat.jsonl", folder_ / folder / "chat.jsonl");
    return folder + "/chat.jsonl";
  }
  std::string model_of(const std::string& out) { return os::read_file(folder_ / out / "model.safetensors"); }
  static std::string error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

// All data is read before the first step.
TEST_F(DataChangeTest, WhileItTrainsARunDoesNotNotice) {
  run(saving("whole", "chat.jsonl"));
  for (size_t i = 0; i < changes().size(); ++i) {
    SCOPED_TRACE(changes()[i].name);
    const std::string number = std::to_string(i), data = copy_of_data("during" + number);
    bool is_changed = false;
    run(saving("run" + number, data), [&] {
      if (!is_changed && fs::exists(folder_ / ("run" + number) / "metrics.jsonl")) {
        changes()[i].apply(folder_ / data);
        is_changed = true;
      }
      return false;
    });
    EXPECT_TRUE(is_changed);
    EXPECT_EQ(model_of("run" + number), model_of("whole"));
    fault::record(changes()[i].name, "a run while it trains", "",
                  {"the same model as with the data unchanged", "nothing"});
  }
}

TEST_F(DataChangeTest, BeforeItGoesOnARunIsRefusedAndGoesOnWithTheOldData) {
  run(saving("whole", "chat.jsonl"));
  for (size_t i = 0; i < changes().size(); ++i) {
    SCOPED_TRACE(changes()[i].name);
    const std::string number = std::to_string(i), data = copy_of_data("between" + number);
    config::TrainConfig settings = saving("run" + number, data);
    int64_t asked = 0;
    run(settings, [&] { return ++asked > 4; });
    ASSERT_EQ(store::list_checkpoints(settings.out).size(), 1u);
    changes()[i].apply(folder_ / data);
    EXPECT_THAT(error_of([&] { run(settings); }),
                AllOf(HasSubstr((folder_ / data).native()), HasSubstr(changes()[i].says)));
    for (const store::CheckpointInfo& info : store::list_checkpoints(settings.out))
      EXPECT_TRUE(store::verify(info).empty());
    settings.data = {folder_ / "chat.jsonl"};  // the same bytes at another path
    run(settings);
    EXPECT_EQ(model_of("run" + number), model_of("whole"));
    fault::record(
        changes()[i].name, "a run between its stop and --resume", "",
        {"refused with an error that names the file; with the old data it goes on to the same model", "nothing"});
  }
}

TEST_F(DataChangeTest, ARefusalNamesBothFingerprints) {
  const std::string data = copy_of_data("data");
  config::TrainConfig settings = saving("run", data);
  int64_t asked = 0;
  run(settings, [&] { return ++asked > 4; });
  const Json state = Json::parse(os::read_file(store::list_checkpoints(settings.out).at(0).folder / "state.json"));
  changes().front().apply(folder_ / data);
  config::TrainConfig fresh = saving("fresh", data);
  asked = 0;
  run(fresh, [&] { return ++asked > 4; });
  const Json other = Json::parse(os::read_file(store::list_checkpoints(fresh.out).at(0).folder / "state.json"));
  const auto fingerprint = [](const Json& of) { return of.at("data").at("fingerprint").get<std::string>(); };
  EXPECT_NE(fingerprint(state), fingerprint(other));
  EXPECT_THAT(error_of([&] { run(settings); }),
              AllOf(HasSubstr(fingerprint(state)), HasSubstr(fingerprint(other)), HasSubstr("Give the same files")));
}

}  // namespace
}  // namespace headrace::train
