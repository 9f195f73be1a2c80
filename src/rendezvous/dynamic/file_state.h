// The shared state of a dynamic rendezvous in a FileStore, where torchrun's agents with
// --rdzv-conf store_type=file have it.
#pragma once

#include "rendezvous/dynamic/state_store.h"
#include "rendezvous/file_store/file_store.h"

#include <memory>
#include <string>
#include <string_view>

namespace lockstep::rendezvous::dynamic {

class FileState final : public StateStore {
 public:
  FileState(file_store::FileStore& store, std::string_view run_id);

  void read(Done<Stored> done) override;
  void write(const Stored& before, const std::string& text, Done<Stored> done) override;

 private:
  file_store::FileStore& store_;
  std::string key_;
  std::shared_ptr<bool> seen_ = std::make_shared<bool>(false);  // the key was there; our life, too
};

}  // namespace lockstep::rendezvous::dynamic
