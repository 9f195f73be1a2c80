// lockstep host-overlay: puts a wheel into an overlay on this host, and imports the wheel's
// modules. Prints the overlay as JSON. People do not call this.
#include "base/text.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "setup/overlay.h"
#include "setup/toolchain_probe.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr std::uint64_t kLargest = 4ULL << 30;  // bytes of a wheel

struct HostOverlayOptions {
  std::string wheel;
  std::string name;
  std::string sha256;
  std::string python;
};

const Table& host_overlay_table() {
  static const Table table = {
      .program = "lockstep host-overlay",
      .summary = "",
      .epilog = "",
      .operands = Operands::none,
      .groups = {{"Options",
                  {{.name = "wheel", .field = into<&HostOverlayOptions::wheel>},
                   {.name = "name", .field = into<&HostOverlayOptions::name>},
                   {.name = "sha256", .field = into<&HostOverlayOptions::sha256>},
                   {.name = "python", .field = into<&HostOverlayOptions::python>}}}}};
  return table;
}

// Writes stdin to a new file. Errors: invalid_input (the wheel is too large), or a read or write
// has failed. The caller removes a partial file.
Status take_wheel(const std::string& path) {
  const io::Fd to(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to) return fail_sys("write " + path, errno);
  std::vector<char> bytes(1UL << 18);
  std::uint64_t size = 0;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_sys("read the wheel", errno);
    if (got == 0) return {};
    size += static_cast<std::uint64_t>(got);
    if (size > kLargest) return fail(Errc::invalid_input, "the wheel has more than 4 GiB");
    LOCKSTEP_TRY(io::write_all(to.get(), {bytes.data(), static_cast<std::size_t>(got)}, path));
  }
}

Result<setup::Overlay> make(setup::OverlayRequest request, const HostOverlayOptions& options) {
  const auto say = [](std::string_view line) {
    std::fprintf(stderr, "lockstep host-overlay: %.*s\n", static_cast<int>(line.size()),
                 line.data());
  };
  if (options.wheel != "-") return setup::make_overlay(request, say);
  // pip reads package, version and tags from the name of a wheel file, so the name must be kept. A
  // slash would let the name lead out of the folder.
  if (!options.name.ends_with(".whl") || options.name.find('/') != std::string::npos)
    return fail(Errc::invalid_input, "--name must be the file name of a wheel");
  LOCKSTEP_TRY(io::make_folders(io::cache_folder()));
  // A folder for this call alone, because two calls may bring wheels of the same name.
  std::string folder = io::cache_folder() + "/.wheel-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return fail_sys("make " + folder, errno);
  request.wheel = folder + "/" + options.name;
  const Status taken = take_wheel(request.wheel);
  auto made =
      taken ? setup::make_overlay(request, say) : Result<setup::Overlay>(Failure(taken.error()));
  std::error_code trouble;
  std::filesystem::remove_all(folder, trouble);
  return made;
}

Status carry_out(const Call& call) {
  HostOverlayOptions options;
  fill(host_overlay_table(), call.parsed, options);
  if (options.wheel.empty())
    return fail(Errc::invalid_input, "--wheel names no file", "- is stdin, with --name");
  LOCKSTEP_TRY_ASSIGN(std::string python, setup::choose_python(options.python));
  LOCKSTEP_TRY_ASSIGN(
      const setup::Overlay overlay,
      make({.wheel = options.wheel, .sha256 = options.sha256, .python = std::move(python)},
           options));
  const nlohmann::ordered_json json{{"path", overlay.path},
                                    {"key", overlay.key},
                                    {"imported", overlay.imported},
                                    {"made", overlay.made}};
  return io::write_all(STDOUT_FILENO, codec::print_json(json) + "\n", "stdout");
}

}  // namespace

extern constinit const Subcommand kHostOverlay{.name = "host-overlay",
                                               .summary = "a wheel into an overlay",
                                               .table = host_overlay_table,
                                               .run = run_status<carry_out>,
                                               .signals = Signals::children,
                                               .listed = false};

}  // namespace lockstep::cli
