#include "setup/request.h"

#include "codec/json.h"
#include "setup/spec.h"

#include <array>
#include <utility>

namespace lockstep::setup {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kChoices = {"project", "venv", "conda", "system"};
constexpr std::array<std::string_view, 3> kStates = {"done", "unchanged", "failed"};
constexpr std::size_t kMostTail = 100;

// Reads the members of one object by name. A missing member, or one of another type, makes good()
// false.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object), good_(object.is_object()) {}

  std::string text(const char* name) {
    const json* found = find(name);
    if (found != nullptr && found->is_string()) return found->get<std::string>();
    good_ = false;
    return {};
  }
  bool flag(const char* name) {
    const json* found = find(name);
    if (found != nullptr && found->is_boolean()) return found->get<bool>();
    good_ = false;
    return false;
  }
  double number(const char* name) {
    const json* found = find(name);
    if (found != nullptr && found->is_number()) return found->get<double>();
    good_ = false;
    return 0;
  }
  std::uint64_t count(const char* name) {
    const json* found = find(name);
    if (found != nullptr && found->is_number_unsigned()) return found->get<std::uint64_t>();
    good_ = false;
    return 0;
  }
  // Returns an empty list, and makes good() false, if the list has more than `most` entries.
  const json& list(const char* name, std::size_t most) {
    static const json kNone = json::array();
    const json* found = find(name);
    if (found != nullptr && found->is_array() && found->size() <= most) return *found;
    good_ = false;
    return kNone;
  }
  std::vector<std::string> texts(const char* name, std::size_t most) {
    std::vector<std::string> all;
    for (const json& each : list(name, most)) {
      good_ = good_ && each.is_string();
      if (good_) all.push_back(each.get<std::string>());
    }
    return all;
  }
  template <class Names>
  std::size_t one_of(const char* name, const Names& names) {
    const std::string value = text(name);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == value) return i;
    good_ = false;
    return 0;
  }

  bool good() const { return good_; }

 private:
  const json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }

  const json& object_;
  bool good_;
};

}  // namespace

std::string_view state_name(StepAnswer::State state) {
  return kStates.at(static_cast<std::size_t>(state));
}

std::string print_request(const SetupRequest& request) {
  json wheels = json::array();
  for (const SetupRequest::File& each : request.wheels)
    wheels.push_back({{"name", each.name}, {"size", each.size}, {"sha256", each.sha256}});
  return codec::print_json(json{{"folder", request.folder},
                                {"specs", request.specs},
                                {"choice", kChoices.at(static_cast<std::size_t>(request.choice))},
                                {"place", request.place},
                                {"python", request.python},
                                {"force", request.force},
                                {"use_uv", request.use_uv},
                                {"overlay", request.overlay},
                                {"wheels", std::move(wheels)}});
}

Result<SetupRequest> read_request(std::string_view line) {
  const json value = codec::parse_json(line, {.bytes = kLongestRequest});
  Reader reader(value);
  SetupRequest request;
  request.folder = reader.text("folder");
  request.specs = reader.texts("specs", kMostSpecs);
  request.choice = static_cast<SetupRequest::Choice>(reader.one_of("choice", kChoices));
  request.place = reader.text("place");
  request.python = reader.text("python");
  request.force = reader.flag("force");
  request.use_uv = reader.flag("use_uv");
  request.overlay = reader.flag("overlay");
  bool good = !request.folder.empty();
  for (const json& each : reader.list("wheels", kMostSpecs)) {
    Reader file(each);
    SetupRequest::File wheel{file.text("name"), file.count("size"), file.text("sha256")};
    // The name becomes a file in the cache: refuse a path.
    const bool plain = wheel.name.ends_with(".whl") && wheel.name.size() < 250 &&
                       wheel.name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    good = good && file.good() && plain && wheel.size <= kLargestWheel;
    request.wheels.push_back(std::move(wheel));
  }
  if (!good || !reader.good()) return fail(Errc::corrupt, "this is not a request for host-setup");
  return request;
}

std::string print_answer(const SetupAnswer& answer) {
  json steps = json::array();
  for (const StepAnswer& each : answer.steps)
    steps.push_back(
        {{"spec", each.spec}, {"state", state_name(each.state)}, {"seconds", each.seconds}});
  const Environment& environment = answer.environment;
  return codec::print_json(json{{"code", answer.code},
                                {"error", answer.error},
                                {"hint", answer.hint},
                                {"tail", answer.tail},
                                {"steps", std::move(steps)},
                                {"kind", kind_name(environment.kind)},
                                {"prefix", environment.prefix},
                                {"python", environment.python},
                                {"local", environment.local}});
}

Result<SetupAnswer> read_answer(std::string_view text) {
  const json value = codec::parse_json(text);
  Reader reader(value);
  SetupAnswer answer;
  answer.code = static_cast<int>(reader.count("code"));
  answer.error = reader.text("error");
  answer.hint = reader.text("hint");
  answer.tail = reader.texts("tail", kMostTail);
  const auto kind = kind_of(reader.text("kind"));
  answer.environment = {.kind = kind.value_or(Environment::Kind::none),
                        .prefix = reader.text("prefix"),
                        .python = reader.text("python"),
                        .local = reader.texts("local", kMostSpecs)};
  // An exit code has one byte.
  bool good = kind.has_value() && answer.code < 256;
  for (const json& each : reader.list("steps", kMostSpecs)) {
    Reader step(each);
    answer.steps.push_back({step.text("spec"),
                            static_cast<StepAnswer::State>(step.one_of("state", kStates)),
                            step.number("seconds")});
    good = good && step.good();
  }
  if (!good || !reader.good()) return fail(Errc::corrupt, "its answer is unreadable");
  return answer;
}

}  // namespace lockstep::setup
