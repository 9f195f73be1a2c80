#include "rendezvous/dynamic/file_place.h"

#include "rendezvous/host_match.h"

#include <utility>

namespace lockstep::rendezvous::dynamic {

FilePlace::FilePlace(io::Loop& loop, FilePlaceSettings settings)
    : loop_(loop), settings_(std::move(settings)), turn_(loop) {}

void FilePlace::open(std::function<void(Result<void>)> done) {
  turn_.start({}, [this, done = std::move(done)] {
    if (auto opened = open_now(); !opened) return done(std::move(opened));
    // Read the state once: the read fails if the file has another format or cannot be locked.
    state_->read([done](const Result<StateStore::Stored>& state) {
      if (!state) return done(tl::make_unexpected(state.error()));
      done({});
    });
  });
}

Status FilePlace::open_now() {
  LOCKSTEP_TRY_ASSIGN(store_,
                      file_store::FileStore::open(
                          loop_, {.path = settings_.path, .timeout = settings_.read_timeout}));
  store_->on_loss([this](const Error& error) {
    if (on_lost_) on_lost_(error);
  });
  state_ = std::make_unique<FileState>(*store_, settings_.run_id);
  // The route to a TCP store tells which of our addresses the other nodes can reach. A file has no
  // route.
  const HostFacts facts = facts_of_this_machine();
  node_address_ = choose_node_address({.local_addr = settings_.local_addr,
                                       .endpoint_host = {},
                                       .route_address = {},
                                       .own_addresses = facts.own_addresses,
                                       .hostname = facts.hostname});
  return {};
}

std::string FilePlace::describe() const {
  return "the file " + (store_ ? store_->path() : settings_.path);
}

}  // namespace lockstep::rendezvous::dynamic
