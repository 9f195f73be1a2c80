// Copies bytes between two descriptors of this process and a connection, in both directions.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/stream_ends.h"

#include <functional>
#include <memory>

namespace lockstep::remote {

// Copies bytes from one descriptor to another. Reads no more than the writer takes, so little is
// held in memory.
class Flow {
 public:
  // Both must be pollable, with no other watch on them. ended: called once, after the last byte.
  // May destroy the Flow.
  Flow(io::Loop& loop, int from, int to, std::function<void()> ended);

 private:
  link::Sink sink_;
  link::Source source_;
};

class Carry {
 public:
  // in, out: pollable and not owned. ended: the other side has closed the connection, and all its
  // bytes are in `out`. May destroy the Carry.
  static Result<std::unique_ptr<Carry>> start(io::Loop& loop, int in, int out, io::Fd connection,
                                              std::function<void()> ended);

 private:
  Carry(io::Loop& loop, int in, int out, io::Fd reads, io::Fd writes, std::function<void()> ended);

  // Two descriptors of the connection: the loop takes one watch for each.
  io::Fd reads_;
  io::Fd writes_;
  Flow there_;
  Flow back_;
};

}  // namespace lockstep::remote
