// The c10d backend with store_type=file: the nodes meet in a file that all of them see.
#pragma once

#include "rendezvous/file_store.h"
#include "rendezvous/meeting_place.h"
#include "rendezvous/text_state.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::rendezvous {

struct FilePlaceSettings {
  std::string path;
  std::string run_id;
  std::optional<std::string> local_addr = {};
  std::chrono::milliseconds read_timeout{60'000};
};

class FilePlace : public MeetingPlace {
 public:
  FilePlace(io::Loop& loop, FilePlaceSettings settings);

  void open(std::function<void(Result<void>)> done) override;
  KeyValue& keys() override { return *store_; }
  StateStore& state() override { return *state_; }
  std::string node_address() const override { return node_address_; }
  std::string describe() const override { return "the file " + settings_.path; }

 private:
  io::Loop& loop_;
  FilePlaceSettings settings_;
  std::string node_address_;
  std::unique_ptr<FileStore> store_;
  std::unique_ptr<TextState<FileStore>> state_;
  io::Timer turn_;
};

}  // namespace lockstep::rendezvous
