#include "headrace/cli/field_options.h"

#include <algorithm>

namespace headrace::cli {
namespace {

std::string help_of(const config::FieldInfo& info) {
  std::string text(info.help);
  for (size_t i = 0; i < info.choices.size(); ++i) text += (i == 0 ? ": " : ", ") + std::string(info.choices[i]);
  return text;
}

template <class Value>
CLI::Option* add_number(CLI::App& app, const config::FieldInfo& info, Value& value, const char* type) {
  return app.add_option(flag_of(info.key), value, help_of(info))->type_name(type)->capture_default_str();
}

}  // namespace

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

CLI::Option* FieldOptions::add_one(CLI::App& app, const config::FieldInfo& info, bool& value) {
  const std::string flag = flag_of(info.key);
  if (!value) return app.add_flag(flag, value, help_of(info));
  return app.add_flag(flag + ",!--no-" + flag.substr(2), value, help_of(info) + " (default: on)");
}

CLI::Option* FieldOptions::add_one(CLI::App& app, const config::FieldInfo& info, std::string& value) {
  CLI::Option* option = app.add_option(flag_of(info.key), value, help_of(info))->type_name("TEXT");
  return value.empty() ? option : option->capture_default_str();
}

CLI::Option* FieldOptions::add_one(CLI::App& app, const config::FieldInfo& info, int64_t& value) {
  return add_number(app, info, value, "N");
}

CLI::Option* FieldOptions::add_one(CLI::App& app, const config::FieldInfo& info, double& value) {
  return add_number(app, info, value, "X");
}

CLI::Option* FieldOptions::add_one(CLI::App& app, const config::FieldInfo& info, std::vector<std::string>& value) {
  return app.add_option(flag_of(info.key), value, help_of(info))->type_name("TEXT ...");
}

}  // namespace headrace::cli
