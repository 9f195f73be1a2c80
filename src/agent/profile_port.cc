#include "agent/profile_port.h"

#include "agent/profile_folder.h"
#include "base/clock_ms.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::agent {
namespace {

// Each rank sends a message every 5 s. A flood must not keep the loop from its other work.
constexpr int kMostMessages = 32;  // in each kRest: the queue of a socket may hold only 10
constexpr std::chrono::milliseconds kRest{50};
constexpr int kMostParents = 16;  // between a rank and its process with PyTorch

// Returns the parent of a process. 0: not known.
pid_t parent_process(pid_t pid) {
  const auto status = io::read_file(fmt::format("/proc/{}/status", pid), 4096);
  if (!status) return 0;
  constexpr std::string_view kName = "\nPPid:";
  const std::size_t at = status->find(kName);
  if (at == std::string::npos) return 0;
  const std::size_t from = at + kName.size();
  const auto parent = parse_int(strip(status->substr(from, status->find('\n', from) - from)));
  return parent && *parent > 0 ? static_cast<pid_t>(*parent) : 0;
}

struct Datagram {
  std::string bytes = {};
  std::string from = {};  // the path of the sender's socket; "": none
  pid_t pid = 0;          // by the kernel
  uid_t user = 0;
};

// Receives one datagram. nullopt: none waits.
std::optional<Datagram> receive_datagram(int fd) {
  Datagram got;
  got.bytes.resize(codec::kMostKinetoBytes + 1);
  sockaddr_un from{};
  iovec part{.iov_base = got.bytes.data(), .iov_len = got.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr header{};
  header.msg_name = &from;
  header.msg_namelen = sizeof from;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t size = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  got.bytes.resize(static_cast<std::size_t>(size));
  const std::size_t head = offsetof(sockaddr_un, sun_path);
  // The kernel counts a zero behind a path of 108 bytes, for which sockaddr_un has no room.
  const std::size_t name_end = std::min<std::size_t>(header.msg_namelen, sizeof from);
  if (name_end > head && from.sun_path[0] != '\0')
    got.from.assign(from.sun_path, strnlen(from.sun_path, name_end - head));
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(each), sizeof sender);
    got.pid = sender.pid;
    got.user = sender.uid;
  }
  return got;
}

}  // namespace

ProfilePort::ProfilePort(io::Loop& loop, const launch::ProfileConfig& config,
                         std::function<std::vector<Sight::Target>()> workers)
    : loop_(loop), config_(config), workers_(std::move(workers)), rest_(loop) {}

void ProfilePort::open(Environment& workers) {
  if (!config_.wanted) return;
  if (const Status made = make(); !made) {
    problem_ = made.error().message;
    close();
    return log::warning("no profile can be taken: {}", problem_);
  }
  for (const auto& [name, value] : config_.variables)
    workers.try_emplace(name, value.empty()                     ? folder_
                              : value == launch::kProfileTraces ? traces_
                                                                : value);
  watch_ = std::make_unique<io::Watch>(loop_, socket_.get());
  watch_->start(io::kReadable, [this](int) { on_readable(); });
}

Status ProfilePort::make() {
  std::string problem = "no place for a socket";
  for (const std::string& place : socket_places()) {
    sweep_profile_folders(place);
    const std::string path = fmt::format("{}/{}{}", place, kProfileFolderHead, random_suffix(8));
    if (path.size() > codec::kMostKinetoFolder)
      problem = place + " is too long a path for Kineto's sockets";
    else if (printable(path) != path)
      // Answers to commands tell the folder as text.
      problem = printable(place) + " has bytes that are not printable";
    else if (mkdir(path.c_str(), 0700) != 0)
      problem = fail_sys(place, errno).value().message;
    else
      folder_ = path;
    if (!folder_.empty()) break;
  }
  if (folder_.empty()) return fail(Errc::unavailable, problem);
  traces_ = folder_;
  if (!config_.place.empty()) {
    traces_ = fmt::format("{}/{}{}", config_.place, kProfileFolderHead, random_suffix(8));
    if (printable(traces_) != traces_)
      return fail(Errc::unavailable, printable(traces_) + " has bytes that are not printable");
    if (mkdir(traces_.c_str(), 0700) != 0) return fail_sys(traces_, errno);
  }
  socket_ = io::Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const std::string path = fmt::format("{}/{}", folder_, kProfileSocket);
  sockaddr_un address{};
  const std::size_t size = profile_address(path, address);
  const int on = 1;
  // The kernel then names the sender of each datagram: pids in messages may be anything.
  if (!socket_ || setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(size)) != 0)
    return fail_sys(path, errno);
  return {};
}

void ProfilePort::on_readable() {
  const io::TimePoint now = io::Clock::now();
  if (now - counted_since_ >= kRest) {
    counted_since_ = now;
    counted_ = 0;
  }
  for (; counted_ < kMostMessages; ++counted_)
    if (!take_message()) return;
  watch_->want(0);
  rest_.start(kRest, [this] { watch_->want(io::kReadable); });
}

// Returns whether there was a message.
bool ProfilePort::take_message() {
  const auto got = receive_datagram(socket_.get());
  if (!got) return false;
  const std::string head = folder_ + "/";
  if (got->user != geteuid() || !got->from.starts_with(head)) return true;
  const std::string name = got->from.substr(head.size());
  const auto message = codec::read_kineto_message(got->bytes);
  if (!message || !codec::is_kineto_client(name)) return true;
  const auto rank = rank_of(got->pid);
  if (!rank) return true;
  const ProfileDesk::Sender sender{.name = name, .rank = *rank};
  const io::TimePoint now = io::Clock::now();
  if (message->kind == codec::KinetoMessage::Kind::hello)
    reply(codec::kineto_hello_answer(desk_.on_hello(sender, now)), got->from);
  else
    // Kineto complains on stderr of a poll without an answer.
    reply(codec::kineto_poll_answer(desk_.on_poll(sender, message->idle, traces_, now, unix_ms())),
          got->from);
  return true;
}

// A process whose queue is full reads an earlier answer first, and polls again.
void ProfilePort::reply(const std::string& bytes, const std::string& path) const {
  sockaddr_un address{};
  const std::size_t size = profile_address(path, address);
  sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
}

// Returns the rank that a process belongs to: a worker, or one of its descendants.
std::optional<int> ProfilePort::rank_of(pid_t pid) const {
  const std::vector<Sight::Target> workers = workers_();
  for (int step = 0; step < kMostParents && pid > 1; ++step) {
    for (const Sight::Target& worker : workers)
      if (worker.pid == pid) return worker.rank;
    pid = parent_process(pid);
  }
  return std::nullopt;
}

http::Response ProfilePort::answer(const http::Request& request, const std::string& node) {
  status::ProfileAnswer said;
  const auto query = status::read_profile_query(request.query);
  if (query)
    said = answer(*query);
  else
    said.refusal = query.error().message;
  said.node = node;
  return {200, "application/json", status::profile_answer_json(said)};
}

status::ProfileAnswer ProfilePort::answer(const status::ProfileQuery& query) {
  using What = status::ProfileQuery::What;
  status::ProfileAnswer said{.id = query.id, .folder = traces_};
  if (folder_.empty()) {
    said.refusal = "the job was started without --profile";
    if (!config_.off.empty()) said.refusal = "the job takes no profiles: " + config_.off;
    if (!problem_.empty()) said.refusal = "the job takes no profiles: " + problem_;
    said.hint = config_.wanted ? "" : "start it with lockstep run --profile";
    return said;
  }
  std::vector<int> alive;
  for (const Sight::Target& worker : workers_())
    if (worker.pid != 0) alive.push_back(worker.rank);
  const io::TimePoint now = io::Clock::now();
  if (query.what == What::start) {
    const auto begun = desk_.begin(query.id, query.wish, alive, now, unix_ms());
    if (!begun) {
      said.refusal = begun.error().message;
      said.hint = begun.error().hint;
      return said;
    }
  }
  // Whoever asks looks for the traces (status::look_for_traces()): to list a shared folder may
  // hang.
  said.ranks = desk_.ranks(query.id, alive, now);
  if (query.what == What::end) desk_.end(query.id);
  return said;
}

void ProfilePort::close() {
  rest_.cancel();
  watch_.reset();
  socket_.reset();
  if (folder_.empty()) return;
  for (const std::string& each : {folder_, traces_})
    if (!each.empty()) remove_profile_folder(each);
  folder_.clear();
  traces_.clear();
}

}  // namespace lockstep::agent
