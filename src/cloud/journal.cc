#include "cloud/journal.h"

#include "base/id.h"
#include "base/text.h"
#include "cloud/json_words.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::cloud {
namespace {

constexpr const char* kRental = "rental";
constexpr const char* kUnwanted =
    "unwanted";  // a record of its own: another process may write the rental
constexpr const char* kStanding = "standing";
constexpr const char* kBlock = "block";
constexpr const char* kJob = "job";
constexpr const char* kOwner = "owner";
constexpr std::size_t kOwnerSize = 16;

std::string block_id(const Block& block) {
  return fmt::format("{} {} {} {} {} {}", static_cast<int>(block.kind), block.provider,
                     block.region, block.zone, block.type, block.spot ? "spot" : "on-demand");
}

// Makes the text of a block: one line of fields between tabs.
std::string block_text(const Block& block) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", static_cast<int>(block.kind), block.provider,
                     block.region, block.zone, block.type, block.spot ? 1 : 0, block.until_ms,
                     printable(block.why, 200));
}

std::optional<Block> block_of(const std::string& text) {
  const std::vector<std::string> parts = split(text, '\t');
  if (parts.size() != 8) return std::nullopt;
  const auto kind = parse_int(parts[0]);
  const auto until = parse_int(parts[6]);
  if (!kind || *kind < 0 || *kind > 2 || !until) return std::nullopt;
  return Block{.kind = static_cast<Block::Kind>(*kind),
               .provider = parts[1],
               .region = parts[2],
               .zone = parts[3],
               .type = parts[4],
               .spot = parts[5] == "1",
               .until_ms = *until,
               .why = parts[7]};
}

std::string new_owner() {
  std::string made = random_uuid4();
  std::erase(made, '-');
  // Providers limit names of machines to 64 characters, so keep the id short.
  made.resize(kOwnerSize);
  return made;
}

std::string owner_path(const std::string& folder) {
  return folder + "/installation";
}

// Returns the id in the file. nullopt if the file is missing or damaged.
std::optional<std::string> kept_owner(const std::string& folder) {
  if (folder.empty()) return std::nullopt;
  const auto bytes = io::read_file(owner_path(folder), kOwnerSize + 2);
  if (!bytes || bytes->size() != kOwnerSize + 1 || bytes->back() != '\n') return std::nullopt;
  // The file outlives a damaged journal. With the same id, the next command still finds the
  // machines of this installation.
  const std::string_view owner = std::string_view(*bytes).substr(0, kOwnerSize);
  if (owner.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") != std::string_view::npos)
    return std::nullopt;
  return std::string(owner);
}

Records::Record record_of(const RentedJob& job) {
  return {.kind = kJob, .id = job.rental, .at_ms = job.began_ms, .json = rented_job_json(job)};
}

Result<std::vector<Rental>> rentals_of(const Result<std::vector<Records::Record>>& records) {
  if (!records) return Failure(records.error());
  std::vector<Rental> rentals;
  for (const Records::Record& record : *records) {
    auto rental = parse_rental(record.json);
    if (!rental)
      return Failure(std::move(rental).error().within("rental " + printable(record.id, 40)));
    rentals.push_back(std::move(*rental));
  }
  return rentals;
}

}  // namespace

Result<Journal> Journal::open(const std::string& folder) {
  // Only the journal records rented machines. Without a journal no command may launch a machine.
  LOCKSTEP_TRY(io::make_folders(folder));
  auto records = open_records(path_in(folder));
  if (!records && records.error().code == Errc::corrupt)
    records.error().hint +=
        "; once it is moved away, the next command ends all that is rented: bring outputs here "
        "before that";
  if (!records) return Failure(std::move(records).error());
  return Journal(std::move(*records), folder);
}

Result<std::string> Journal::owner() {
  LOCKSTEP_TRY_ASSIGN(std::string owner, owner_record());
  // Ignore a failure: the id must be available even if the disk is full. The next call writes the
  // file.
  if (!folder_.empty() && !kept_owner(folder_))
    (void)io::keep_record(owner_path(folder_), owner + "\n");
  return owner;
}

Result<std::string> Journal::owner_record() {
  LOCKSTEP_TRY_ASSIGN(const auto known, records_->open_ones(kOwner));
  if (!known.empty()) return known.front().json;
  const auto kept = kept_owner(folder_);
  // Another process may add an id at the same time. The first record wins, and both processes read
  // it.
  LOCKSTEP_TRY(records_->add({.kind = kOwner, .id = kOwner, .json = kept ? *kept : new_owner()}));
  LOCKSTEP_TRY_ASSIGN(const auto first, records_->open_ones(kOwner));
  if (first.empty())
    return fail(Errc::internal, "the journal does not keep this installation's name");
  return first.front().json;
}

Status Journal::take_owner(const std::string& name) {
  LOCKSTEP_TRY(records_->add({.kind = kOwner, .id = kOwner, .json = name}));
  LOCKSTEP_TRY_ASSIGN(const std::string first, owner());
  if (first == name) return {};
  return fail(Errc::corrupt, "the journal is another installation's");
}

Status Journal::keep(const Rental& rental) {
  // Store a closed rental under the time of its end, for queries of a period.
  const bool closed = rental.closed_ms != 0;
  LOCKSTEP_TRY(records_->put({.kind = kRental,
                              .id = rental.id,
                              .open = !closed,
                              .at_ms = closed ? rental.closed_ms : rental.created_ms,
                              .json = rental_json(rental)}));
  if (closed && end_is_asked(rental.id).value_or(false)) (void)records_->drop(kUnwanted, rental.id);
  return {};
}

Result<std::vector<Rental>> Journal::open_rentals() {
  LOCKSTEP_TRY_ASSIGN(auto rentals, rentals_of(records_->open_ones(kRental)));
  LOCKSTEP_TRY_ASSIGN(const auto unwanted, records_->open_ones(kUnwanted));
  // A mark wins over the record: the owner of the rental may write an older copy at any time.
  for (const Records::Record& record : unwanted)
    for (Rental& rental : rentals)
      if (rental.id == record.id) rental.wanted = false;
  return rentals;
}

Status Journal::ask_to_end(const std::string& rental) {
  return records_->put({.kind = kUnwanted, .id = rental, .json = "{}"});
}

Result<bool> Journal::end_is_asked(const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(const auto unwanted, records_->open_ones(kUnwanted));
  return std::any_of(unwanted.begin(), unwanted.end(),
                     [&](const Records::Record& record) { return record.id == rental; });
}

Result<Rental> Journal::of_cluster(const std::string& cluster) {
  LOCKSTEP_TRY_ASSIGN(std::vector<Rental> rentals, open_rentals());
  for (Rental& rental : rentals)
    if (rental.cluster == cluster) return std::move(rental);
  return fail(Errc::not_found, fmt::format("nothing is rented for '{}'", printable(cluster, 63)),
              "`lockstep cost` names what is rented");
}

Result<std::vector<Rental>> Journal::since(std::int64_t ms) {
  LOCKSTEP_TRY_ASSIGN(std::vector<Rental> rentals, open_rentals());
  LOCKSTEP_TRY_ASSIGN(std::vector<Rental> others, rentals_of(records_->since(kRental, ms)));
  for (Rental& rental : others)
    if (rental.closed_ms != 0) rentals.push_back(std::move(rental));
  return rentals;
}

Result<bool> Journal::any_since(std::int64_t ms) {
  LOCKSTEP_TRY_ASSIGN(const auto open, records_->open_ones(kRental));
  // An open rental counts, however old.
  if (!open.empty()) return true;
  LOCKSTEP_TRY_ASSIGN(const auto newest, records_->newest(kRental, ""));
  return newest && newest->at_ms >= ms;
}

// This query and the next two search the text of records. Only this program writes records, so the
// form of a member is fixed.
Result<bool> Journal::ever_used(std::string_view provider) {
  LOCKSTEP_TRY_ASSIGN(const auto found,
                      records_->newest(kRental, "\"provider\":" + json_text(provider)));
  return found.has_value();
}

Result<bool> Journal::ever_used_in(std::string_view region) {
  LOCKSTEP_TRY_ASSIGN(const auto found,
                      records_->newest(kRental, "\"region\":" + json_text(region)));
  return found.has_value();
}

Status Journal::keep_standing(const Rental& rental) {
  return records_->put({.kind = kStanding,
                        .id = rental.cluster,
                        .at_ms = rental.created_ms,
                        .json = rental_json(rental)});
}

Result<std::vector<Rental>> Journal::standing() {
  return rentals_of(records_->open_ones(kStanding));
}

Result<bool> Journal::has_standing(const std::string& cluster) {
  LOCKSTEP_TRY_ASSIGN(const auto records, records_->open_ones(kStanding));
  return std::any_of(records.begin(), records.end(),
                     [&](const Records::Record& record) { return record.id == cluster; });
}

Status Journal::drop_standing(const std::string& cluster) {
  return records_->drop(kStanding, cluster);
}

Status Journal::keep_job(const RentedJob& job) {
  return records_->put(record_of(job));
}

Status Journal::note_job(const RentedJob& job) {
  return records_->change(record_of(job));
}

// Drops an unreadable job. The machines of the job still end with their rental.
Result<std::vector<RentedJob>> Journal::jobs() {
  LOCKSTEP_TRY_ASSIGN(const auto records, records_->open_ones(kJob));
  std::vector<RentedJob> jobs;
  for (const Records::Record& record : records) {
    auto job = parse_rented_job(record.json);
    if (job && job->rental == record.id)
      jobs.push_back(std::move(*job));
    else
      (void)records_->drop(kJob, record.id);
  }
  return jobs;
}

Result<bool> Journal::has_job(const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(const auto records, records_->open_ones(kJob));
  return std::any_of(records.begin(), records.end(),
                     [&](const Records::Record& record) { return record.id == rental; });
}

Status Journal::drop_job(const std::string& rental) {
  return records_->drop(kJob, rental);
}

Status Journal::learn(const Block& block) {
  return records_->put(
      {.kind = kBlock, .id = block_id(block), .at_ms = block.until_ms, .json = block_text(block)});
}

Result<std::vector<Block>> Journal::blocks(std::int64_t now_ms) {
  LOCKSTEP_TRY_ASSIGN(const auto records, records_->open_ones(kBlock));
  std::vector<Block> known;
  for (const Records::Record& record : records) {
    auto block = block_of(record.json);
    if (block && block->until_ms > now_ms)
      known.push_back(std::move(*block));
    else
      (void)records_->drop(kBlock, record.id);  // after a failure the next command drops the record
  }
  return known;
}

}  // namespace lockstep::cloud
