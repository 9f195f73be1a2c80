#include "remote/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <string>
#include <utility>

namespace lockstep::remote {

Flow::Flow(io::Loop& loop, int from, int to, std::function<void()> ended)
    : sink_(loop, to, true,
            {[this](std::size_t bytes) { source_.grant(bytes); }, std::move(ended)}),
      source_(
          loop, from, true,
          {[this](const std::string& bytes) { sink_.put(bytes); }, [this] { sink_.finish(); }}) {}

Result<std::unique_ptr<Carry>> Carry::start(io::Loop& loop, int in, int out, io::Fd connection,
                                            std::function<void()> ended) {
  io::Fd writes(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!writes) return fail_sys("carry a connection", errno);
  return std::unique_ptr<Carry>(
      new Carry(loop, in, out, std::move(connection), std::move(writes), std::move(ended)));
}

Carry::Carry(io::Loop& loop, int in, int out, io::Fd reads, io::Fd writes,
             std::function<void()> ended)
    : reads_(std::move(reads)),
      writes_(std::move(writes)),
      // The end of `in` is passed on, and what the other side still sends is awaited.
      there_(loop, in, writes_.get(), [this] { shutdown(writes_.get(), SHUT_WR); }),
      back_(loop, reads_.get(), out, std::move(ended)) {}

}  // namespace lockstep::remote
