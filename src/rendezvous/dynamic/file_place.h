// The c10d backend's meeting place with store_type=file: a file in PyTorch's FileStore format that
// all nodes can access.
#pragma once

#include "io/loop.h"
#include "rendezvous/dynamic/file_state.h"
#include "rendezvous/dynamic/meeting_place.h"
#include "rendezvous/file_store/file_store.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous::dynamic {

struct FilePlaceSettings {
  std::string path;  // the endpoint as given; empty: a temporary file, for one node only
  std::string run_id;
  std::optional<std::string> local_addr = {};
  std::chrono::milliseconds read_timeout{60'000};  // timeout of each answer
};

class FilePlace : public MeetingPlace {
 public:
  FilePlace(io::Loop& loop, FilePlaceSettings settings);

  void open(std::function<void(Result<void>)> done) override;
  KeyValue& keys() override { return *store_; }
  StateStore& state() override { return *state_; }
  std::string node_address() const override { return node_address_; }
  std::string describe() const override;

 private:
  Status open_now();

  io::Loop& loop_;
  FilePlaceSettings settings_;
  std::string node_address_;
  std::unique_ptr<file_store::FileStore> store_;
  std::unique_ptr<FileState> state_;  // declared after store_, so destroyed first
  io::Timer turn_;
};

}  // namespace lockstep::rendezvous::dynamic
