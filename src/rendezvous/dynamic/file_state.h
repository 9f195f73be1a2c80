// The shared state of a dynamic rendezvous in a FileStore. torchrun's agents keep the state there
// with --rdzv-conf store_type=file.
#pragma once

#include "base/callback_scope.h"
#include "rendezvous/dynamic/state_store.h"
#include "rendezvous/file_store/file_store.h"

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
  bool seen_ = false;  // the key has existed
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::dynamic
