// lockstep forward: connects ports of this machine to ports of a host.
#include "base/text.h"
#include "cli/forward_options.h"
#include "cli/places.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "hosts/port_forward.h"
#include "hosts/wait_notice.h"

#include <fmt/core.h>

#include <signal.h>

#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

// Returns the forwards that the words behind the host name. Errors: invalid_input.
Result<std::vector<hosts::ForwardSpec>> specs_of(const std::vector<std::string>& names) {
  if (names.empty())
    return fail(Errc::invalid_input, "no host is named", "write lockstep forward user@host 8888");
  if (names.size() < 2)
    return fail(Errc::invalid_input, "no port is given",
                fmt::format("write lockstep forward {} 8888", printable(names[0])));
  std::vector<hosts::ForwardSpec> specs;
  for (std::size_t i = 1; i < names.size(); ++i) {
    LOCKSTEP_TRY_ASSIGN(hosts::ForwardSpec spec, hosts::parse_forward_spec(names[i]));
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string text_of(const hosts::ForwardSpec& spec, const std::string& name, bool json) {
  if (!json)
    return fmt::format("127.0.0.1:{} is {}:{} of {}", spec.local, spec.host, spec.port, name);
  return codec::print_json(nlohmann::ordered_json{
      {"local", spec.local}, {"host", spec.host}, {"port", spec.port}, {"node", name}});
}

// Runs until a signal ends the process. Returns only if the host is not reached, or on an error.
Result<ExitCode> forward_command(const Call& call) {
  LOCKSTEP_TRY_ASSIGN(auto specs, specs_of(call.parsed.names));
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place,
                      one_place(forward_table(), call.parsed, call.parsed.names[0]));
  const bool json = one_node_options(forward_table(), call.parsed).json;
  // A write to a lost ssh master must fail. SIGPIPE would end this process and all connections.
  signal(SIGPIPE, SIG_IGN);
  io::Loop loop;
  ExitCode code = ExitCode::ok;
  hosts::WaitNotice notice(loop, [&]() -> hosts::WaitNotice::Waiting {
    return {{place.name, std::string("logging in") + hosts::kCtrlCEnds}};
  });
  notice.start();
  std::unique_ptr<hosts::PortForward> forward;
  LOCKSTEP_TRY_ASSIGN(forward,
                      hosts::PortForward::open(
                          loop, place, std::move(specs),
                          {[&] {
                             // Print the forward's own specs: port 0 has become the chosen port.
                             notice.cancel();
                             for (const hosts::ForwardSpec& spec : forward->specs())
                               std::puts(text_of(spec, place.name, json).c_str());
                             // A program waits for these lines, and a pipe is buffered.
                             std::fflush(stdout);
                           },
                           [&](const Error& why) { print_error(forward_table().program, why); },
                           [&](Error why) {
                             code = refuse(forward_table().program,
                                           std::move(why).within(place.name), kAsSsh);
                             loop.stop();
                           }}));
  loop.run();
  return code;
}

}  // namespace

extern constinit const Subcommand kForward{.name = "forward",
                                           .summary = "connect ports here to ports of a host",
                                           .table = forward_table,
                                           .run = forward_command,
                                           .signals = Signals::children};

}  // namespace lockstep::cli
