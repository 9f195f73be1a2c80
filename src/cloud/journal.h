// The journal of rentals. A rental is on disk before any byte of its launch leaves, and stays open
// until its last machine was seen gone.
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

// Records that survive a crash. A record is on disk once put() has returned.
class Records {
 public:
  struct Record {
    std::string kind;
    std::string id;
    bool open = true;
    std::int64_t at_ms = 0;  // Unix time, for queries of a period
    std::string json;
  };

  virtual ~Records() = default;
  virtual Status put(const Record& record) = 0;  // inserts or replaces
  // Inserts a record. Does nothing if a record has this kind and id.
  virtual Status add(const Record& record) = 0;
  // Replaces a record. Does nothing if no record has this kind and id.
  virtual Status change(const Record& record) = 0;
  virtual Status drop(const std::string& kind, const std::string& id) = 0;
  virtual Result<std::vector<Record>> open_ones(const std::string& kind) = 0;
  virtual Result<std::vector<Record>> since(const std::string& kind, std::int64_t ms) = 0;
  // Returns the newest record whose JSON contains `part`. Reads only this record into memory.
  virtual Result<std::optional<Record>> newest(const std::string& kind,
                                               const std::string& part) = 0;
};

// Opens records in a SQLite file that only this user may read.
Result<std::unique_ptr<Records>> open_records(const std::string& path);

class Journal {
 public:
  explicit Journal(std::unique_ptr<Records> records, std::string folder = {})
      : records_(std::move(records)), folder_(std::move(folder)) {}
  // folder: the state folder.
  static Result<Journal> open(const std::string& folder);
  static std::string path_in(const std::string& folder) { return folder + "/rentals.db"; }

  // Returns this installation's id for tags. The first call makes the id. The file `installation`
  // beside the journal keeps a copy: if a user moves a damaged journal away, the machines still
  // belong to this installation.
  Result<std::string> owner();
  // Gives a guard's journal the id of the installation whose machines it guards. Errc::corrupt: the
  // journal has another id.
  Status take_owner(const std::string& name);

  // Keeps a rental. After an error nothing may be rented.
  Status keep(const Rental& rental);
  Result<std::vector<Rental>> open_rentals();
  // Returns the open rental of that cluster. Errc::not_found: there is none.
  Result<Rental> of_cluster(const std::string& cluster);
  // Returns open rentals and those closed since then (Unix time).
  Result<std::vector<Rental>> since(std::int64_t ms);
  // Marks a rental for termination. The process with the lock of its cluster terminates it within
  // seconds. From now on every reader sees Rental::wanted as false.
  Status ask_to_end(const std::string& rental);
  Result<bool> end_is_asked(const std::string& rental);
  // Cheap queries, however long the journal is. Return whether since() would return a rental, and
  // whether a machine was ever requested from a provider, or in a region.
  Result<bool> any_since(std::int64_t ms);
  Result<bool> ever_used(std::string_view provider);
  Result<bool> ever_used_in(std::string_view region);

  // Clusters that are rented anew for each use. Only cluster, wish and terms count.
  Status keep_standing(const Rental& rental);
  Result<std::vector<Rental>> standing();
  Result<bool> has_standing(const std::string& cluster);
  Status drop_standing(const std::string& cluster);

  // The jobs of rentals. A job stays until its user was told the ending.
  Status keep_job(const RentedJob& job);
  // Updates a job. Does nothing if the job was dropped: a canceled job must not come back.
  Status note_job(const RentedJob& job);
  Result<std::vector<RentedJob>> jobs();
  Result<bool> has_job(const std::string& rental);
  Status drop_job(const std::string& rental);

  Status learn(const Block& block);
  Result<std::vector<Block>> blocks(std::int64_t now_ms);  // drops the old ones

 private:
  Result<std::string> owner_record();

  std::unique_ptr<Records> records_;
  std::string folder_;  // "": no file beside the records
};

}  // namespace lockstep::cloud
