// lockstep call: calls a Python function on hosts over SSH. docs/protocols/call.md describes the
// messages.
#include "base/text.h"
#include "cli/call_options.h"
#include "cli/places.h"
#include "cli/project_words.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "hosts/command_run.h"
#include "hosts/python_call.h"
#include "hosts/variables.h"
#include "io/fd.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using hosts::CallAnswer;
using hosts::CommandRequest;
using hosts::HostEnding;
using hosts::HostPlace;

// Wider than the usual limits of JSON: the value is the user's own data.
constexpr codec::JsonLimits kValueLimits{
    .bytes = 64UL << 20, .depth = 64, .members = 4UL << 20, .values = 4UL << 20};

void say(const std::string& text) {
  print_error(call_table().program, {Errc::unavailable, text, {}, 0});
}

struct Place {
  std::string folder;      // working folder of the function, relative to the home on the host
  std::string root = ".";  // the project's top, relative to `folder`
};
Result<Place> place_of(const CallOptions& options) {
  if (options.folder) return Place{*options.folder};
  auto project = project_of(".", options.project);
  if (!project) {
    Error error = project.error();
    error.hint = "give --project DIR, or with --cwd a folder there";
    return tl::make_unexpected(std::move(error));
  }
  if (project->folder.empty()) return Place{project->name};
  // Go up once for each level of the current folder below the project's top.
  std::string root = "..";
  for (const char c : project->folder)
    if (c == '/') root += "/..";
  return Place{project->name + "/" + project->folder, root};
}

// Returns the command for the hosts: Python with the runner, in the project's environment.
Result<CommandRequest> request_of(const CallOptions& options) {
  CommandRequest request;
  LOCKSTEP_TRY_ASSIGN(request.hosts, places_of(options.where, options.places));
  LOCKSTEP_TRY_ASSIGN(const Place place, place_of(options));
  request.argv = {"in-project", options.python, "-c", std::string(hosts::kCallRunner)};
  request.own_binary = true;
  LOCKSTEP_TRY_ASSIGN(request.env, hosts::variables_of({.env = options.variables.env,
                                                        .files = options.variables.env_files,
                                                        .secrets = options.variables.secrets},
                                                       hosts::own_variable));
  request.folder = place.folder;
  // A calling program writes the whole request to our stdin and reads the answer itself, so both
  // pass through unread. Answers of several hosts would mix in one descriptor.
  if (options.answer_fd) {
    if (request.hosts.size() != 1)
      return fail(Errc::invalid_input, "--answer-fd takes one host", "give --nodes N");
    request.answer = CommandRequest::Answer::pass;
    request.answer_fd = static_cast<int>(*options.answer_fd);
    return request;
  }
  hosts::PythonCall call;
  LOCKSTEP_TRY_ASSIGN(call.function, hosts::parse_function_name(options.function));
  const bool any = options.args != "[]" || options.kwargs != "{}";
  // Without arguments the runner does not load Python's JSON module.
  if (any)
    call.arguments = fmt::format(R"({{"args":{},"kwargs":{}}})", options.args, options.kwargs);
  // The module is looked for in the current folder first, then in the project's top folder.
  call.path = {"."};
  if (place.root != ".") call.path.push_back(place.root);
  call.root = place.root;
  call.output_to_stderr = options.json;
  request.input = CommandRequest::Input::given;
  request.given = {hosts::call_request(call)};
  request.answer = CommandRequest::Answer::keep;
  return request;
}

// The outcome of the call on one host: a value, an exception or an error.
struct Outcome {
  int code = 0;
  bool returned = false;
  nlohmann::json value = {};      // set if the function returned
  nlohmann::json exception = {};  // set if the function raised: type, module, message, traceback
  std::string error = {};         // set if there is neither: the reason
};

std::string why_no_answer(const HostEnding& ending) {
  // 128 + N means signal N, as in a shell. Linux has the signals 1 to 64.
  if (ending.code > 128 && ending.code < 128 + 65)
    return fmt::format("the function's process was ended by {}",
                       proc::signal_name(ending.code - 128));
  return fmt::format("the function's process ended with code {} before the function returned",
                     ending.code);
}

Outcome outcome_of(const HostPlace& host, const HostEnding& ending, const CallOptions& options) {
  Outcome outcome{.code = ending.code};
  if (!ending.error.empty()) {
    outcome.error = ending.error;
    if (passed_on(ending.code) == ExitCode::cannot_run && !options.folder)
      outcome.error += fmt::format("; lockstep sync {} sends the project there", options.where);
    return outcome;
  }
  // The answer, not the exit code, says what happened: the function may also end the process.
  const CallAnswer answer = hosts::parse_call_answer(ending.answer);
  if (answer.kind == CallAnswer::Kind::value) {
    outcome.value = codec::parse_json(answer.text, kValueLimits);
    outcome.returned = !outcome.value.is_discarded();
    if (!outcome.returned)
      outcome.error =
          fmt::format("{}: the value cannot be printed as JSON, or is too large", host.name);
  } else if (answer.kind == CallAnswer::Kind::raised) {
    outcome.exception = codec::parse_json(answer.text);
    if (!outcome.exception.is_object())
      outcome.error = fmt::format("{}: the exception's report is not valid", host.name);
  } else {
    const bool refused = answer.kind == CallAnswer::Kind::refused;
    outcome.error = fmt::format("{}: {}", host.name,
                                refused ? printable(answer.text, 1000) : why_no_answer(ending));
  }
  // Without a value the call has failed, even if the process ended with 0 (os._exit(0)).
  if (outcome.code == 0 && !outcome.returned) outcome.code = number(ExitCode::failed);
  return outcome;
}

// Returns the text as lines for a terminal. Control characters are escaped, because a host's text
// must not command the user's terminal.
std::string shown(const std::string& prefix, const nlohmann::json& text) {
  std::string lines;
  if (!text.is_string()) return lines;
  for (const std::string& line : split(text.get_ref<const std::string&>(), '\n'))
    if (!line.empty()) lines += prefix + printable(line, 4000) + "\n";
  return lines;
}

void print_outcome(const Outcome& outcome, const std::string& prefix) {
  if (outcome.returned) {
    const std::string line =
        prefix + codec::print_json(outcome.value, codec::JsonText::ascii) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
  } else if (outcome.error.empty()) {
    const std::string lines = shown(prefix, outcome.exception.value("traceback", nlohmann::json()));
    std::fwrite(lines.data(), 1, lines.size(), stderr);
  } else {
    say(outcome.error);
  }
}

nlohmann::json json_of(const Outcome& outcome, const std::string& host) {
  nlohmann::json node{{"node", host}, {"code", outcome.code}};
  if (outcome.returned) {
    node["value"] = outcome.value;
  } else {
    node["error"] =
        outcome.error.empty() ? outcome.exception : nlohmann::json{{"message", outcome.error}};
  }
  return node;
}

// Prints the outcomes of all hosts, in their order. Returns the first code that is not 0.
ExitCode tell(const CallOptions& options, const CommandRequest& request,
              const std::vector<HostEnding>& endings) {
  int code = 0;
  nlohmann::json nodes = nlohmann::json::array();
  for (std::size_t i = 0; i < endings.size(); ++i) {
    const HostPlace& host = request.hosts[i];
    const Outcome outcome = outcome_of(host, endings[i], options);
    if (code == 0) code = outcome.code;
    if (options.json) nodes.push_back(json_of(outcome, host.name));
    if (!options.json) print_outcome(outcome, endings.size() > 1 ? host.name + ": " : "");
  }
  if (options.json)
    fmt::print("{}\n", codec::print_json(nlohmann::json{{"nodes", std::move(nodes)}}));
  return passed_on(code);
}

// Reports an error inside the answer if a program calls, else as a line on stderr. Returns `code`.
Result<ExitCode> refuse_call(const CallOptions& options, const Error& error, ExitCode code) {
  std::string text = error.message;
  if (!error.hint.empty()) text += "; " + error.hint;
  if (options.answer_fd && io::write_all(static_cast<int>(*options.answer_fd),
                                         hosts::refused_answer(text), "the answer"))
    return code;
  return refuse(call_table().program, error, always(code));
}

Result<ExitCode> call_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(const CallOptions options, call_options(call.parsed));
  // When the calling program dies, end the call, also on the host: no command there outlives its
  // client.
  if (options.answer_fd) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto request = request_of(options);
  if (!request) return refuse_call(options, request.error(), code_of(request.error(), kAsSsh));
  const auto endings = hosts::run_command(*request);
  if (!endings) return refuse_call(options, endings.error(), ExitCode::not_reached);
  if (!options.answer_fd) return tell(options, *request, *endings);
  const HostEnding& ending = endings->front();
  if (ending.error.empty()) return passed_on(ending.code);
  return refuse_call(options, {Errc::unavailable, ending.error, {}, 0}, passed_on(ending.code));
}

}  // namespace

extern constinit const Subcommand kCall{.name = "call",
                                        .summary = "call a Python function on hosts over SSH",
                                        .table = call_table,
                                        .run = call_command,
                                        .signals = Signals::blocked,
                                        .fails_with = kAsSsh};

}  // namespace lockstep::cli
