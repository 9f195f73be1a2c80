#include "agent/dump_request.h"

#include <utility>

namespace lockstep::agent {

void DumpRequest::start(const RecorderFolder& folder, const std::vector<int>& ranks, Done done) {
  cancel();
  folder_ = folder;
  done_ = std::move(done);
  end_ = io::Clock::now() + options_.limit;
  for (const int rank : ranks) {
    folder.set_aside(rank);
    if (folder.ask(rank)) {
      pending_[rank] = {};
      continue;
    }
    auto socket = folder.dial(rank);
    if (socket)
      pending_[rank].call =
          std::make_unique<DumpCall>(loop_, *std::move(socket), options_.dump.bytes);
    else
      (socket.error().code == Errc::timeout ? answers_.silent : answers_.without).push_back(rank);
  }
  timer_.start(pending_.empty() ? io::Duration(0) : options_.pause, [this] { look(); });
}

void DumpRequest::cancel() {
  timer_.cancel();
  pending_.clear();
  answers_ = {};
}

// A rank may have written after the last look at its file, so the files are looked at once more. A
// control plane may have answered already.
std::set<int> DumpRequest::take_writers() {
  for (const auto& [rank, state] : pending_) {
    const auto now = folder_->look(rank);
    if (state.call || (now && now->bytes > 0 && state.file != now)) writers_.insert(rank);
  }
  return std::exchange(writers_, {});
}

bool DumpRequest::take_answer(int rank, const DumpCall& call) {
  if (call.state() == DumpCall::State::asked) return false;
  if (call.state() == DumpCall::State::none) {
    answers_.without.push_back(rank);
    return true;
  }
  // The dump has cost the rank the time of a thread.
  writers_.insert(rank);
  auto dump = recorder::read_dump(call.body(), options_.dump);
  if (dump) {
    answers_.dumps.emplace(rank, *std::move(dump));
    folder_->done(rank, call.body());
  } else {
    answers_.unreadable.push_back(rank);
  }
  return true;
}

// A dump is read once its file has not changed since the last look: the worker writes it in pieces.
bool DumpRequest::take(int rank, Pending& pending) {
  if (pending.call) return take_answer(rank, *pending.call);
  const auto now = folder_->look(rank);
  if (!now || now->bytes == 0) return false;
  if (pending.file != now) {
    pending = {.file = now};
    writers_.insert(rank);
    return false;
  }
  if (pending.refused) return false;
  const auto bytes = folder_->read(rank, options_.dump.bytes);
  auto dump = bytes ? recorder::read_dump(*bytes, options_.dump) : Failure(bytes.error());
  pending.refused = !dump;
  if (!dump) return false;
  answers_.dumps.emplace(rank, *std::move(dump));
  folder_->done(rank);
  return true;
}

void DumpRequest::look() {
  const io::TimePoint began = io::Clock::now();
  for (auto at = pending_.begin();
       at != pending_.end() && io::Clock::now() < began + options_.budget;)
    at = take(at->first, at->second) ? pending_.erase(at) : std::next(at);
  if (!pending_.empty() && began < end_) return timer_.start(options_.pause, [this] { look(); });
  for (const auto& [rank, state] : pending_)
    (state.file ? answers_.unreadable : answers_.silent).push_back(rank);
  pending_.clear();
  // The owner may begin the next request at once.
  const Done done = std::move(done_);
  done(std::exchange(answers_, {}));
}

}  // namespace lockstep::agent
