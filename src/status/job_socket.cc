#include "status/job_socket.h"

#include "base/text.h"
#include "http/response_parse.h"
#include "io/fd.h"
#include "io/unix_socket.h"

#include <fmt/core.h>

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::status {
namespace {

constexpr std::size_t kMostAnswer = 4UL << 20;
constexpr std::size_t kMostJobId = 48;  // keeps the name within 107 bytes
constexpr std::size_t kMostSockets = 8UL << 20;
// Only this user's commands connect, and each asks once.
constexpr int kBacklog = 16;

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostJobId &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_';
         });
}

std::string address_of(const JobSocketName& name, uid_t user) {
  // '@': the abstract namespace. Such a socket goes with its process, so no file is left behind.
  return fmt::format("@lockstep/{}/{}", user, print_socket_name(name));
}

// Waits until the socket is ready or the deadline has passed.
Status wait_for(int fd, short events, io::TimePoint deadline) {
  while (true) {
    const auto left = deadline - io::Clock::now();
    if (left <= io::Duration::zero())
      return fail(Errc::timeout, "the agent of the job does not answer");
    pollfd one{.fd = fd, .events = events, .revents = 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    const int ready = poll(&one, 1, static_cast<int>(std::min<std::int64_t>(ms, 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail_sys("wait for the agent of the job", errno);
  }
}

Status send_all(int fd, std::string_view bytes, io::TimePoint deadline) {
  while (!bytes.empty()) {
    // A stopped agent reads nothing. Do not wait in send() beyond the deadline.
    const ssize_t put = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    if (put >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return fail_sys("ask the agent of the job", errno);
    LOCKSTEP_TRY(wait_for(fd, POLLOUT, deadline));
  }
  return {};
}

Status receive_all(int fd, http::ResponseParser& parser, std::string& body,
                   io::TimePoint deadline) {
  using State = http::ResponseParser::State;
  char chunk[16384];
  while (parser.state() == State::head || parser.state() == State::body) {
    LOCKSTEP_TRY(wait_for(fd, POLLIN, deadline));
    const ssize_t got = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return fail_sys("ask the agent of the job", errno);
    if (got == 0) {
      parser.end();
      break;
    }
    parser.feed({chunk, static_cast<std::size_t>(got)}, body);
    // Check while the answer arrives: a broken agent could send for ever.
    if (body.size() > kMostAnswer)
      return fail(Errc::corrupt, "the answer of the job's agent is too long");
  }
  if (parser.state() != State::complete)
    return fail(Errc::unavailable, "the agent of the job ended before its answer did");
  return {};
}

bool has_variable(pid_t pid, const std::string& variable) {
  constexpr std::size_t kMostEnvironment = 16UL << 20;
  const auto text = io::read_file(fmt::format("/proc/{}/environ", pid), kMostEnvironment);
  const auto entries = split(text ? *text : std::string(), '\0');
  return std::find(entries.begin(), entries.end(), variable) != entries.end();
}

bool is_agent_of(const JobSocketName& name, const JobSocketName& of) {
  return of.job.empty() ? name.pid == of.pid : name.job == of.job;
}

Result<io::Fd> connect_agent(const JobSocketName& name) {
  LOCKSTEP_TRY_ASSIGN(io::Fd fd, io::connect_unix(address_of(name, geteuid())));
  // Any user may take a name of the abstract namespace: check who listens.
  if (!io::is_own_peer(fd.get()))
    return fail(Errc::denied, "the socket of the job belongs to another user");
  return fd;
}

Result<std::string> ask_over(const io::Fd& fd, std::string_view target, io::Duration limit) {
  const io::TimePoint deadline = io::Clock::now() + limit;
  LOCKSTEP_TRY(
      send_all(fd.get(), fmt::format("GET {} HTTP/1.1\r\nHost: agent\r\n\r\n", target), deadline));
  http::ResponseParser parser;
  std::string body;
  LOCKSTEP_TRY(receive_all(fd.get(), parser, body, deadline));
  // A running job keeps its version of lockstep when the binary is replaced.
  if (parser.head().status == 404)
    return fail(Errc::not_found, "the job runs under another version of lockstep");
  if (parser.head().status != 200)
    return fail(Errc::corrupt, "the job's agent answered: " + printable(std::string(strip(body))));
  return body;
}

}  // namespace

std::string print_socket_name(const JobSocketName& name) {
  std::string text = std::to_string(name.pid);
  if (is_plain_name(name.mark)) text += "-" + name.mark;
  // A foreign id is left out rather than put into a path. Its job is still found by the pid.
  if (is_plain_name(name.job)) text += "." + name.job;
  return text;
}

std::optional<JobSocketName> parse_socket_name(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::string_view head = text.substr(0, dot);
  const std::size_t dash = head.find('-');
  const auto pid = parse_int(std::string(head.substr(0, dash)));
  if (!pid || *pid <= 0 || *pid > 1 << 30) return std::nullopt;
  JobSocketName name{.pid = static_cast<pid_t>(*pid), .job = {}};
  if (dash != std::string_view::npos) {
    name.mark = head.substr(dash + 1);
    if (!is_plain_name(name.mark)) return std::nullopt;
  }
  if (dot == std::string_view::npos) return name;
  name.job = text.substr(dot + 1);
  if (!is_plain_name(name.job)) return std::nullopt;
  return name;
}

AgentsWord read_agents_word(const std::string& word) {
  const std::size_t bracket = word.find('[');
  if (bracket == std::string::npos) return {.job = word, .variable = {}};
  return {.job = word.substr(0, bracket),
          .variable = "LOCKSTEP_SWEEP_ROW=" + word.substr(bracket + 1, word.size() - bracket - 2)};
}

Result<std::unique_ptr<JobSocket>> JobSocket::open(io::Loop& loop, const JobSocketName& name,
                                                   http::Handlers handlers) {
  LOCKSTEP_TRY_ASSIGN(io::Fd listener, io::listen_unix(address_of(name, geteuid()), kBacklog));
  auto server =
      http::Server::serve(loop, std::move(listener), std::move(handlers), {.own_user_only = true});
  return std::unique_ptr<JobSocket>(new JobSocket(std::move(server)));
}

std::vector<JobSocketName> sockets_in(std::string_view proc_net_unix, uid_t user,
                                      std::size_t most) {
  // Accepted connections have the name of their listener, but not its flag.
  constexpr std::string_view kListens = " 00010000 ";
  const std::string head = fmt::format(" @lockstep/{}/", user);
  std::vector<JobSocketName> found;
  for (const std::string& line : split(std::string(proc_net_unix), '\n')) {
    const std::size_t at = line.find(head);
    if (at == std::string::npos || line.find(kListens) > at) continue;
    if (auto name = parse_socket_name(std::string_view(line).substr(at + head.size())))
      found.push_back(std::move(*name));
    if (found.size() == most) break;
  }
  return found;
}

Result<std::string> ask_agent(const JobSocketName& name, std::string_view target,
                              io::Duration limit) {
  LOCKSTEP_TRY_ASSIGN(const io::Fd fd, connect_agent(name));
  return ask_over(fd, target, limit);
}

std::vector<std::string> ask_agents(const JobSocketName& of, std::string_view target,
                                    io::Duration limit, const std::string& late,
                                    const std::string& variable) {
  std::vector<std::string> answers;
  const auto add_late = [&](const Error& error) {
    if (error.code == Errc::timeout && !late.empty()) answers.push_back(late);
  };
  const auto sockets = io::read_file("/proc/net/unix", kMostSockets);
  if (!sockets) return answers;
  // Another user may listen under names of the job, as often as there are descriptors.
  const io::TimePoint end = io::Clock::now() + 3 * limit;
  for (const JobSocketName& name : sockets_in(*sockets, geteuid())) {
    if (!is_agent_of(name, of)) continue;
    if (io::Clock::now() >= end) {
      add_late({.code = Errc::timeout, .message = {}, .hint = {}});
      continue;
    }
    const auto fd = connect_agent(name);
    if (!fd) add_late(fd.error());
    if (!fd) continue;
    const auto pid = io::peer_pid(fd->get());
    // Containers that share the network number their processes alike: pid 14 of another container
    // is another job.
    if (of.job.empty() && !pid) continue;
    if (!variable.empty() && !(pid && has_variable(*pid, variable))) continue;
    if (auto answer = ask_over(*fd, target, limit))
      answers.push_back(std::move(*answer));
    else
      add_late(answer.error());
  }
  return answers;
}

bool AgentProcess::lives() const {
  // The pidfd tells the end of the process, and the connection whose pid it was.
  std::array<pollfd, 2> fds = {pollfd{process.get(), POLLIN, 0}, pollfd{connection.get(), 0, 0}};
  return poll(fds.data(), fds.size(), 0) == 0;
}

Result<std::optional<AgentProcess>> find_agent(const JobSocketName& of,
                                               const std::string& variable) {
  LOCKSTEP_TRY_ASSIGN(const std::string sockets, io::read_file("/proc/net/unix", kMostSockets));
  std::optional<AgentProcess> found;
  ino_t mounts = 0;
  std::vector<std::string> runs;
  Status late;
  for (const JobSocketName& name : sockets_in(sockets, geteuid(), kMostSockets)) {
    if (!is_agent_of(name, of)) continue;
    // Another user may listen under such names and accept nothing.
    auto fd = io::connect_unix_now(address_of(name, geteuid()));
    if (!fd && fd.error().code == Errc::timeout)
      late = fail(Errc::timeout, "the agent of the job does not answer");
    if (!fd || !io::is_own_peer(fd->get())) continue;
    const auto pid = io::peer_pid(fd->get());
    if (!pid) continue;
    AgentProcess agent{.pid = *pid,
                       .connection = std::move(*fd),
                       .process = io::Fd(static_cast<int>(syscall(SYS_pidfd_open, *pid, 0)))};
    if (!agent.process || !agent.lives()) continue;
    if (!variable.empty() && !has_variable(*pid, variable)) continue;
    // Without the right to look, 0 stands for a container that cannot be entered either.
    struct stat facts {};
    (void)stat(fmt::format("/proc/{}/ns/mnt", *pid).c_str(), &facts);
    if (found && facts.st_ino == mounts) continue;
    runs.push_back(fmt::format("pid-{}", name.pid));
    mounts = facts.st_ino;
    found = std::move(agent);
  }
  if (runs.size() > 1)
    return fail(
        Errc::invalid_input,
        fmt::format("the job has several containers here: {}", join(runs, ", ")),
        "name a row of a sweep, as lockstep exec 'JOB[12]', or a run on its host, as pid-N");
  if (!found && !late) return Failure(late.error());
  return found;
}

}  // namespace lockstep::status
