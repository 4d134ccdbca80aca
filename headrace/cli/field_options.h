// Command-line flags made from a settings struct's list of fields (config/fields.h). One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/config/fields.h"

namespace headrace::cli {

// "max_length" -> "--max-length".
std::string flag_of(std::string_view key);

class FieldOptions {
 public:
  // Adds one flag a field to `app`; --help shows the defaults of `defaults`. Keys in `required` must be given.
  template <class Settings>
  void add_to(CLI::App& app, Settings defaults) {
    defaults.visit_fields([&](const config::FieldInfo& info, auto& member) {
      using Value = std::decay_t<decltype(member)>;
      const auto holder = std::make_shared<Value>(member);
      entries_[std::string(info.key)] = {add_one(app, info, *holder), holder};
    });
  }

  // Sets the fields whose flags were given; the others keep their values.
  template <class Settings>
  void apply(Settings& settings) const {
    settings.visit_fields([&](const config::FieldInfo& info, auto& member) {
      using Value = std::decay_t<decltype(member)>;
      const Entry& entry = entries_.at(std::string(info.key));
      if (entry.option->count() == 0) return;
      member = *static_cast<const Value*>(entry.holder.get());
      if constexpr (std::is_same_v<Value, std::string>) config::check_choice(info, member);
    });
  }

 private:
  struct Entry {
    CLI::Option* option = nullptr;
    std::shared_ptr<void> holder;
  };

  static CLI::Option* add_one(CLI::App& app, const config::FieldInfo& info, bool& value);
  static CLI::Option* add_one(CLI::App& app, const config::FieldInfo& info, std::string& value);
  static CLI::Option* add_one(CLI::App& app, const config::FieldInfo& info, int64_t& value);
  static CLI::Option* add_one(CLI::App& app, const config::FieldInfo& info, double& value);
  static CLI::Option* add_one(CLI::App& app, const config::FieldInfo& info, std::vector<std::string>& value);

  std::map<std::string, Entry> entries_;
};

}  // namespace headrace::cli
