// Finds the listener of a port in /proc.
#include "host/port_owner.h"

#include "base/text.h"
#include "host/sysfs.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <unistd.h>

#include <charconv>
#include <vector>

namespace lockstep::host {
namespace {

struct Listener {
  std::string inode;
  uid_t uid = 0;
};

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> result;
  for (auto& word : split(line, ' '))
    if (!word.empty()) result.push_back(std::move(word));
  return result;
}

// Parses a table of sockets. A line has the port in hex, and state 0A (LISTEN) for a listener:
// "  0: 0100007F:7533 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 4711 ..."
void add_listeners(const std::string& table, std::uint16_t port, std::vector<Listener>& listeners) {
  // A table has 150 bytes per socket: that of a busy machine is many megabytes long.
  const auto text = io::read_file(table, 64 << 20);
  if (!text) return;
  const std::string suffix = fmt::format(":{:04X}", port);
  for (const auto& line : split(*text, '\n')) {
    const auto fields = words(line);
    if (fields.size() < 10 || fields[3] != "0A" || !fields[1].ends_with(suffix)) continue;
    listeners.push_back({fields[9], static_cast<uid_t>(parse_int(fields[7]).value_or(0))});
  }
}

// A listener's inode shows as a link "socket:[INODE]" among the process's descriptors.
bool holds(const std::string& fd_dir, const std::vector<Listener>& listeners) {
  for (const auto& name : list_names(fd_dir)) {
    char target[64];
    const ssize_t size =
        readlink(fmt::format("{}/{}", fd_dir, name).c_str(), target, sizeof target);
    if (size <= 0) continue;
    const std::string_view link(target, static_cast<std::size_t>(size));
    for (const auto& listener : listeners)
      if (link == "socket:[" + listener.inode + "]") return true;
  }
  return false;
}

std::string command_of(const std::string& dir) {
  const auto line = io::read_file(dir + "/cmdline", 4096);
  if (!line || line->empty()) return printable(read_text(dir + "/comm").value_or(""));
  std::string_view text = *line;
  // Arguments are separated by NUL.
  if (text.ends_with('\0')) text.remove_suffix(1);
  return printable(shell_join(split(text, '\0')));
}

}  // namespace

std::optional<PortOwner> find_port_owner(const std::string& proc, std::uint16_t port) {
  std::vector<Listener> listeners;
  add_listeners(proc + "/net/tcp", port, listeners);
  // A listener on all addresses usually stands in the table of IPv6 only.
  add_listeners(proc + "/net/tcp6", port, listeners);
  if (listeners.empty()) return std::nullopt;
  for (const int pid : list_numbered(proc, "")) {
    const std::string dir = fmt::format("{}/{}", proc, pid);
    if (holds(dir + "/fd", listeners))
      return PortOwner{pid, command_of(dir), listeners.front().uid};
  }
  // The port is taken, but /proc hides the descriptors of another user's process.
  return PortOwner{0, "", listeners.front().uid};
}

std::string port_holder(int port) {
  const auto owner = find_port_owner("/proc", static_cast<std::uint16_t>(port));
  if (!owner) return {};
  return owner->pid > 0 ? fmt::format("pid {}: {}", owner->pid, owner->command)
                        : fmt::format("a process of uid {}", owner->uid);
}

void name_port_holder(Error& error, int port) {
  if (error.code != Errc::already_exists) return;
  const std::string holder = port_holder(port);
  if (!holder.empty()) error.message += " (held by " + holder + ")";
}

}  // namespace lockstep::host
