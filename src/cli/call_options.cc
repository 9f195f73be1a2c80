#include "cli/call_options.h"

#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

namespace lockstep::cli {
namespace {

Group call_group() {
  return {
      "Options",
      {
          {.name = "args",
           .field = into<&CallOptions::args>,
           .metavar = "JSON",
           .help = "the function's arguments by place, a list",
           .shown_default = "[]"},
          {.name = "kwargs",
           .field = into<&CallOptions::kwargs>,
           .metavar = "JSON",
           .help = "the function's arguments by name, an object",
           .shown_default = "{}"},
          {.name = "project",
           .field = into<&CallOptions::project>,
           .metavar = "DIR[:DST]",
           .help = "the synced project here, and the folder there",
           .shown_default = "git's top folder, else the current one"},
          {.name = "cwd",
           .field = into<&CallOptions::folder>,
           .metavar = "DIR",
           .help = "folder there, relative to the home; the module is found from it",
           .shown_default = "the current folder's place in the synced project"},
          {.name = "python",
           .field = into<&CallOptions::python>,
           .metavar = "PROGRAM",
           .help = "the interpreter there",
           .shown_default = "python3 of the project's environment"},
          {.name = "json",
           .field = into<&CallOptions::json>,
           .help = "one object on stdout with every node's value or exception; the function's "
                   "output goes to stderr"},
          {.name = "answer-fd",
           .field = into<&CallOptions::answer_fd>,
           .metavar = "N",
           .help = "for programs: the request comes on stdin, the answer goes to this descriptor"},
      }};
}

Table make_call_table() {
  return {.program = "lockstep call",
          .summary = "Calls a Python function on a host, or on all nodes of a cluster at once.",
          .examples =
              "lockstep call gpus train:evaluate --kwargs '{\"split\": \"test\"}'\n"
              "lockstep call gpus --nodes 0 platform:node",
          .details =
              "The function runs in a fresh Python, in the folder of the synced project. Prints\n"
              "the function's output at once, and the value at the end, as JSON. The host needs\n"
              "only Python 3.8 or later and the modules that the function imports.",
          .epilog =
              "Exit code: 0 where the function returned, 1 where it raised (the traceback is on\n"
              "stderr), 3 where the function does not exist or its value is not JSON,\n"
              "127 where Python is missing, 255 where the host is not reached; for several nodes\n"
              "the first code other than 0.\n",
          .operands = Operands::names,
          .groups = {call_group(), {"Variables", variable_rows()}, place_group()},
          .shown_names = "HOST|CLUSTER MODULE:FUNCTION"};
}

// Checks the arguments here: on the host, an error would come only after the log-in.
Status check_json(std::string_view option, const std::string& text, bool list) {
  const nlohmann::json value = codec::parse_json(text);
  if (list ? value.is_array() : value.is_object()) return {};
  return fail(Errc::invalid_input,
              fmt::format("--{} must be a JSON {} (got {})", option, list ? "list" : "object",
                          printable(text, 60)),
              list ? "write --args '[1, \"two\"]'" : "write --kwargs '{\"name\": 1}'");
}

}  // namespace

const Table& call_table() {
  static const Table table = make_call_table();
  return table;
}

Result<CallOptions> call_options(const Parsed& parsed) {
  CallOptions options;
  fill(call_table(), parsed, options);
  fill(call_table(), parsed, options.places);
  fill(call_table(), parsed, options.variables);
  const auto refuse = [](std::string text) -> Failure {
    return fail(Errc::invalid_input, std::move(text), "write lockstep call HOST module:function");
  };
  // With --answer-fd the request on stdin names the function.
  const std::size_t wanted = options.answer_fd ? 1 : 2;
  if (parsed.names.empty()) return refuse("no host is named");
  options.where = parsed.names[0];
  if (parsed.names.size() < wanted) return refuse("no function is named");
  if (parsed.names.size() > wanted)
    return refuse(fmt::format("'{}' is one word too many", printable(parsed.names[wanted])));
  if (!options.answer_fd) {
    options.function = parsed.names[1];
    LOCKSTEP_TRY(check_json("args", options.args, true));
    LOCKSTEP_TRY(check_json("kwargs", options.kwargs, false));
  }
  return options;
}

}  // namespace lockstep::cli
