#include "cloud/refused_end.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::cloud {

bool is_lasting_refusal(const Error& error) {
  return error.code == Errc::denied || error.code == Errc::not_found ||
         error.code == Errc::invalid_input;
}

std::string console_words(const Traits& traits, const Machine& machine) {
  const std::pair<std::string_view, const std::string&> fields[] = {
      {"{id}", machine.id}, {"{region}", machine.region}, {"{zone}", machine.zone}};
  std::string text(traits.console);
  for (const auto& [name, value] : fields)
    for (std::size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  return text;
}

std::string refused_end_words(const std::vector<Machine>& machines, Micros per_hour,
                              const Traits& traits, const Error& why) {
  if (machines.empty()) return {};
  std::string ids;
  for (const Machine& machine : machines)
    ids += (ids.empty() ? "" : ", ") + machine.id;
  return fmt::format(
      "{} still costs {} USD an hour, and is asked to end again and again: {}{}{}; in the console: "
      "{}",
      ids, dollars_text(per_hour), why.message, why.hint.empty() ? "" : "; ", why.hint,
      console_words(traits, machines.front()));
}

}  // namespace lockstep::cloud
