// The journal of what was rented: a rental is on disk before a byte of it goes to a provider, and
// stays open until its last machine was seen gone.
#pragma once

#include "base/error.h"
#include "cloud/choice.h"
#include "cloud/rental.h"
#include "cloud/rented_job.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::cloud {

// Records that outlast a crash: when put() has returned they are on disk.
class Records {
 public:
  struct Record {
    std::string kind;
    std::string id;
    bool open = true;
    std::int64_t at_ms = 0;  // Unix time, for questions about a period
    std::string json;
  };

  virtual ~Records() = default;
  virtual Status put(const Record& record) = 0;  // new, or in place of the old one
  // Nothing where there is one with this kind and id.
  virtual Status add(const Record& record) = 0;
  // Nothing where there is none.
  virtual Status change(const Record& record) = 0;
  virtual Status drop(const std::string& kind, const std::string& id) = 0;
  virtual Result<std::vector<Record>> open_ones(const std::string& kind) = 0;
  virtual Result<std::vector<Record>> since(const std::string& kind, std::int64_t ms) = 0;
  // The newest whose JSON has this in it; of them all only one is read out.
  virtual Result<std::optional<Record>> newest(const std::string& kind,
                                               const std::string& part) = 0;
};

// In a SQLite file, made for this user alone.
Result<std::unique_ptr<Records>> open_records(const std::string& path);

class Journal {
 public:
  explicit Journal(std::unique_ptr<Records> records, std::string folder = {})
      : records_(std::move(records)), folder_(std::move(folder)) {}
  // folder: the state folder.
  static Result<Journal> open(const std::string& folder);
  static std::string path_in(const std::string& folder) { return folder + "/rentals.db"; }

  // This installation's name in tags: made at the first call. The file `installation` beside the
  // journal has it, too: machines stay this user's when a damaged journal is moved away.
  Result<std::string> owner();
  // For a journal of another's machines: they bear its name. corrupt: it has one already.
  Status take_owner(const std::string& name);

  // Exhausted or denied: nothing may be rented.
  Status keep(const Rental& rental);
  Result<std::vector<Rental>> open_rentals();
  // The open one of that cluster; not_found: there is none.
  Result<Rental> of_cluster(const std::string& cluster);
  // Open ones, and those closed since then.
  Result<std::vector<Rental>> since(std::int64_t ms);
  // Nobody wants it any more: whoever has its cluster's lock ends it within seconds, and all read
  // it as not wanted from now on.
  Status ask_to_end(const std::string& rental);
  Result<bool> end_is_asked(const std::string& rental);
  // These are quick, however many there are: whether there are any of those, and whether a machine
  // of that provider, or for that cluster, was ever asked for.
  Result<bool> any_since(std::int64_t ms);
  Result<bool> ever_used(std::string_view provider);
  Result<bool> ever_used_in(std::string_view region);
  Result<bool> ever_rented(std::string_view cluster);

  // Clusters that are rented at their use: only name, wish and terms count.
  Status keep_standing(const Rental& rental);
  Result<std::vector<Rental>> standing();
  Result<bool> has_standing(const std::string& cluster);
  Status drop_standing(const std::string& cluster);

  // The jobs that rentals are for, until their users know how they ended.
  Status keep_job(const RentedJob& job);
  // How it stands now; nothing where it was dropped, as nobody wants it any more.
  Status note_job(const RentedJob& job);
  Result<std::vector<RentedJob>> jobs();
  Result<bool> has_job(const std::string& rental);
  Status drop_job(const std::string& rental);

  Status learn(const Block& block);
  Result<std::vector<Block>> blocks(std::int64_t now_ms);  // drops the old ones

 private:
  Result<std::string> owner_record();

  std::unique_ptr<Records> records_;
  std::string folder_;  // "": there is nothing beside the records
};

}  // namespace lockstep::cloud
