#include "ssh/mux_session.h"

#include "base/text.h"
#include "io/unix_socket.h"
#include "ssh/mux_codec.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

namespace lockstep::ssh {
namespace {

// Sends one byte with one descriptor, as ssh masters expect.
Status send_fd(int socket, int fd) {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1)
    return fail_sys("hand a stream to the ssh master", errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<MuxSession>> MuxSession::ask(io::Loop& loop, const std::string& control,
                                                    const std::string& request,
                                                    std::initializer_list<int> fds, Events events) {
  LOCKSTEP_TRY_ASSIGN(io::Fd fd, io::connect_unix(control));
  // The requests may follow our hello before the master's hello has come.
  LOCKSTEP_TRY(io::write_all(fd.get(), mux::hello() + request, control));
  for (const int each : fds)
    // The master reads and writes the passed descriptors itself, so no byte of the session runs
    // through this process's socket to the master.
    LOCKSTEP_TRY(send_fd(fd.get(), each));
  return std::unique_ptr<MuxSession>(new MuxSession(loop, std::move(fd), std::move(events)));
}

Result<std::unique_ptr<MuxSession>> MuxSession::open(io::Loop& loop, const std::string& socket,
                                                     const std::string& command,
                                                     const Streams& streams, Events events) {
  return ask(loop, socket, mux::new_session(0, command),
             {streams.in.get(), streams.out.get(), streams.err.get()}, std::move(events));
}

Result<std::unique_ptr<MuxSession>> MuxSession::forward(io::Loop& loop, const std::string& control,
                                                        const std::string& host, int port,
                                                        int socket, Events events) {
  return ask(loop, control, mux::new_forward(0, host, static_cast<std::uint32_t>(port)),
             {socket, socket}, std::move(events));
}

MuxSession::MuxSession(io::Loop& loop, io::Fd fd, Events events)
    : fd_(std::move(fd)), watch_(loop, fd_.get()), events_(std::move(events)) {
  watch_.start(io::kReadable, [this](int) { receive(); });
}

void MuxSession::receive() {
  std::array<char, 4096> bytes;
  const ssize_t got = read(fd_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return end();
  pending_.append(bytes.data(), static_cast<std::size_t>(got));
  const auto here = calls_.witness();
  std::string_view rest = pending_;
  bool broken = false;
  while (const auto message = mux::take_message(rest, broken)) {
    if (const auto* hello = std::get_if<mux::Hello>(&*message))
      broken = hello->version != mux::kVersion;
    if (const auto* exited = std::get_if<mux::Exited>(&*message))
      code_ = static_cast<int>(exited->code);
    if (std::holds_alternative<mux::Opened>(*message)) events_.opened();
    // An event may have destroyed this object.
    if (here.gone()) return;
    if (const auto* refused = std::get_if<mux::Refused>(&*message)) {
      watch_.stop();
      return events_.refused(
          fail(Errc::unavailable, "no session could be opened: " + printable(refused->why))
              .value());
    }
    if (broken) break;
  }
  if (broken) return end();
  pending_.erase(0, pending_.size() - rest.size());
}

void MuxSession::end() {
  watch_.stop();
  const auto ended = events_.ended;  // may destroy this
  ended(code_);
}

}  // namespace lockstep::ssh
