// NCCL's RAS: a thread in each worker that answers questions about all communicators of its mesh
// (NCCL 2.24 and later; JSON from 2.28.7 on). The client's side of the protocol, and the report's
// reader. Pure.
//
//   > CLIENT PROTOCOL 2     < SERVER PROTOCOL 2
//   > TIMEOUT 5             < OK
//   > SET FORMAT json       < OK, or an error before 2.28
//   > VERBOSE STATUS        < the report, until the connection ends
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::recorder {

// Asks a RAS port for one report. Feed the bytes of the connection to feed(), and send `out` after
// each call.
class RasTalk {
 public:
  static constexpr std::size_t kMostLine = 1024;  // NCCL's own limit
  static constexpr std::size_t kMostReport = 8U << 20;

  explicit RasTalk(int timeout_s);

  std::string out;  // to send; the driver removes bytes from the front

  // Fails if the other end speaks another protocol, or sends more than kMostReport.
  Status feed(std::string_view bytes);
  // Returns the report once the connection has ended. Fails if it ended before the report.
  Result<std::string> finish();
  bool json() const { return json_; }  // false: NCCL before 2.28 reports in text for people

 private:
  enum class Stage { greeting, timeout, format, report };
  Status take_line(std::string_view line);

  Stage stage_ = Stage::greeting;
  int timeout_s_;
  bool json_ = false;
  std::string pending_;
};

struct RasRank {
  int rank = 0;  // inside the communicator
  std::string host = {};
  std::int64_t pid = 0;
  int device = -1;
  // The counts of five operations: "AllReduce" -> 1742. They count what was enqueued.
  std::map<std::string, std::int64_t> counts = {};
  bool missing = false;       // RAS has no answer from this rank
  bool unresponsive = false;  // of a missing rank
  bool dead = false;          // of a missing rank: RAS has given it up
};

struct RasCommunicator {
  std::string hash = {};  // with the secondary hash: the first alone is not unique
  std::string name = {};  // PyTorch's group, from 2.14 on
  int size = 0;
  std::vector<RasRank> ranks = {};  // missing ones last
};

struct RasReport {
  std::string nccl_version = {};
  std::vector<RasCommunicator> communicators = {};
};

// Reads a JSON report. Adds the commas that NCCL 2.28.9 forgets inside missing_ranks. All texts are
// printable and bounded. Fails with Errc::corrupt.
Result<RasReport> read_ras_report(std::string_view json);

// Inserts a comma wherever a value follows a value. Changes nothing inside texts.
std::string with_commas(std::string_view json);

// Returns a sentence for each communicator that is uneven or has missing ranks: "rank 3 (pid 8123
// on n2) has not answered", "AllReduce: rank 3 is at 1741, the others at 1742". A communicator
// whose counts are equal gives none: equal counts prove nothing.
std::vector<std::string> ras_sentences(const RasReport& report);

}  // namespace lockstep::recorder
