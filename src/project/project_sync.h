// Syncs a project's files to hosts, from the offer to the last byte, for sync_project().
// project_sync.cc asks the hosts for missing files, project_send.cc sends the files.
#pragma once

#include "io/fd.h"
#include "io/loop.h"
#include "project/fan_out.h"
#include "project/fan_plan.h"
#include "project/rsync_run.h"
#include "project/sync_tree.h"
#include "sync/offer.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::project {

// Returns the first names of a list, and the number of the others, for people.
std::string some_of(const std::vector<std::string>& names);

// A single sync. The constructor's arguments must outlive the object.
class ProjectSync {
 public:
  ProjectSync(const std::vector<hosts::HostPlace>& hosts, const Project& project,
              const SyncOptions& options);
  // Runs the whole sync. Call once.
  Result<SyncReport> run();

 private:
  Status look();
  std::string encoded_offer();
  using TakeAnswer = void (ProjectSync::*)(std::size_t index, sync::Answer answer);
  Status ask(const std::vector<std::size_t>& indexes, TakeAnswer take);
  std::vector<hosts::HostPlace> places_at(const std::vector<std::size_t>& indexes) const;
  Result<std::vector<hosts::HostEnding>> offer_to(std::vector<hosts::HostPlace> places);
  std::optional<sync::Answer> read_answer(std::size_t index, const hosts::HostEnding& ending);
  void tell_removals(std::size_t index, const sync::Answer& answer) const;
  void take_answer(std::size_t index, sync::Answer answer);
  void tell_what_stays(const std::string& name, const sync::Answer& answer) const;
  void choose_way(std::size_t index, sync::Answer answer);
  Status send();
  Status send_directly();
  Status open_fan();
  Status close_fan();
  void show(std::uint64_t bytes);
  Status send_restless();
  Status hold_restless();
  void stop(const std::vector<std::size_t>& hosts);
  void warn_of_much() const;
  struct Way {
    std::vector<Transfer> transfers;
    std::vector<std::size_t> whose;  // per transfer: index of the host in report_.hosts
    void drop(std::size_t host);
  };
  void take_ends(const Way& way, const std::vector<TransferEnd>& ends);
  void remark(const std::string& text) const {
    if (options_.remark) options_.remark(text);
  }

  const std::vector<hosts::HostPlace>& places_;
  const Project& project_;
  const SyncOptions& options_;
  sync::Manifest manifest_;
  std::string offer_;
  bool looked_ = false;  // manifest_ is filled
  bool told_ = false;    // the user knows which files hosts will remove
  SyncReport report_;
  const std::string destination_;
  const sync::Owner owner_;
  const bool has_rsync_;
  std::set<std::string> restless_;           // paths of files that changed during the read
  std::set<std::size_t> unsettled_;          // hosts that lack some restless files
  std::map<std::string, std::string> held_;  // snapshots of restless files, by path
  bool last_round_ = false;                  // restless files are sent from held_
  Way rsync_;
  Way pieces_;
  io::Loop loop_;
  std::optional<FanOut> fan_;
  FanPlan fan_plan_;
  std::set<std::size_t> awaited_;  // hosts that still lack files
  std::uint64_t all_ = 0;          // bytes to send to all hosts
  std::uint64_t before_ = 0;       // bytes of finished transfers
  std::uint64_t direct_ = 0;       // bytes of the running transfers from here
  std::optional<int> stopped_;     // the signal that stopped the sync
};

}  // namespace lockstep::project
