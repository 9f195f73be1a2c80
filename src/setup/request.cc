#include "setup/request.h"

#include "codec/json_fields.h"
#include "setup/spec.h"

#include <array>

namespace lockstep::setup {
namespace {

constexpr std::array<std::string_view, 4> kChoices = {"project", "venv", "conda", "system"};
constexpr std::array<std::string_view, 3> kStates = {"done", "unchanged", "failed"};
constexpr std::size_t kMostTail = 100;

}  // namespace

std::string_view state_name(StepAnswer::State state) {
  return kStates.at(static_cast<std::size_t>(state));
}

static void fields(codec::JsonFields& io, SetupRequest::File& wheel) {
  io("name", wheel.name);
  io("size", wheel.size, {0, kLargestWheel});
  io("sha256", wheel.sha256);
  // The name becomes a path on this host: refuse folders and NUL bytes.
  io.require(wheel.name.ends_with(".whl") && wheel.name.size() < 250 &&
                 wheel.name.find_first_of(std::string_view("/\0", 2)) == std::string::npos,
             "name", "the name of a wheel");
}

static void fields(codec::JsonFields& io, SetupRequest& request) {
  io("folder", request.folder);
  io.require(!request.folder.empty(), "folder", "a folder");
  io("specs", request.specs);
  io("choice", request.choice, kChoices);
  io("place", request.place);
  io("python", request.python);
  io("force", request.force);
  io("use_uv", request.use_uv);
  io("overlay", request.overlay);
  io("wheels", request.wheels);
}

static void fields(codec::JsonFields& io, StepAnswer& step) {
  io("spec", step.spec);
  io("state", step.state, kStates);
  io("seconds", step.seconds);
}

static void fields(codec::JsonFields& io, SetupAnswer& answer) {
  io("code", answer.code, {0, 255});
  io("error", answer.error);
  io("hint", answer.hint);
  io("tail", answer.tail);
  io("steps", answer.steps);
  fields(io, answer.environment);
}

std::string print_request(const SetupRequest& request) {
  return codec::print_json(nlohmann::json(codec::write_fields(request)));
}

Result<SetupRequest> read_request(std::string_view line) {
  SetupRequest request;
  if (!codec::read_fields(codec::parse_json(line, {.bytes = kLongestRequest}), request,
                          {.list = kMostSpecs}))
    return fail(Errc::corrupt, "this is not a request for host-setup");
  return request;
}

std::string print_answer(const SetupAnswer& answer) {
  return codec::print_json(nlohmann::json(codec::write_fields(answer)));
}

Result<SetupAnswer> read_answer(std::string_view text) {
  SetupAnswer answer;
  if (!codec::read_fields(codec::parse_json(text), answer, {.list = kMostSpecs}) ||
      answer.tail.size() > kMostTail)
    return fail(Errc::corrupt, "its answer is unreadable");
  return answer;
}

}  // namespace lockstep::setup
