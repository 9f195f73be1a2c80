#include "rendezvous/file_place.h"

#include "rendezvous/host_match.h"

#include <utility>

namespace lockstep::rendezvous {

FilePlace::FilePlace(io::Loop& loop, FilePlaceSettings settings)
    : loop_(loop), settings_(std::move(settings)), turn_(loop) {}

void FilePlace::open(std::function<void(Result<void>)> done) {
  // No connection tells which address the others know this node by: --local-addr, or the way out.
  node_address_ = settings_.local_addr.value_or(outward_address());
  auto store = FileStore::open(loop_, {.path = settings_.path, .timeout = settings_.read_timeout});
  if (!store)
    return turn_.start({}, [error = std::move(store).error(), done = std::move(done)] {
      done(tl::make_unexpected(error));
    });
  store_ = std::move(*store);
  settings_.path = store_->path();
  store_->on_loss([this](const Error& error) {
    if (on_lost_) on_lost_(error);
  });
  state_ = std::make_unique<TextState<FileStore>>(*store_, "torch.rendezvous." + settings_.run_id);
  state_->open(std::move(done));
}

}  // namespace lockstep::rendezvous
