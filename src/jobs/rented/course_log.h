// The log of a job's course on rented machines: the course's messages and the job's output. The
// course runs in a background process that writes the log. Terminals are viewers that read it.
//
// A log has up to three files (rent::follow_logs). The first 8 MiB stay as the beginning, and the
// last 8 to 16 MiB as the end. What lies between is dropped. Each file but the first begins with
// its place in the whole log.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "jobs/rented/stream_text.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::jobs::rented {

// How far a transfer has come, for a progress bar.
struct Progress {
  std::uint64_t bytes = 0;
  std::uint64_t of = 0;  // 0: not known
};

// Takes over this process's stdout and stderr, and writes both into the log on a thread of its own.
// Neither a slow viewer nor a full disk ever blocks the course. At most one object exists at a
// time.
class CourseLog {
 public:
  explicit CourseLog(const std::string& cluster);
  // Writes everything printed so far. Later output of this process is dropped.
  ~CourseLog();
  CourseLog(const CourseLog&) = delete;
  CourseLog& operator=(const CourseLog&) = delete;

  // Begins, or continues the log of an earlier process of the same course. Removes a log last
  // written before `since_ms` (Unix time), the start of the rental: that log is another job's.
  Status begin(std::int64_t since_ms);

  // Shows viewers how far a transfer has come; nullopt: no transfer runs.
  void show(const std::optional<Progress>& progress);

 private:
  Status open_file();
  void pump();
  bool copy(link::Stream stream, const io::Fd& from);
  void append(link::Stream stream, std::string_view bytes);
  void turn_over();

  std::string cluster_;
  std::string beginning_;
  std::string before_;
  std::string path_;
  io::Fd file_;
  off_t size_ = 0;  // of the newest file
  StreamEncoder encoder_;
  io::Fd out_;   // read end of the pipe behind stdout
  io::Fd err_;   // likewise stderr
  io::Fd over_;  // an eventfd: the process ends
  io::Fd progress_;
  std::vector<char> buffer_;
  std::thread pump_;
};

// Reads a log as it grows. If the reader is more than two files behind, output between is lost for
// it.
class CourseLogReader {
 public:
  enum class From { beginning, present_end };
  explicit CourseLogReader(const std::string& cluster, From from = From::present_end);

  // Passes on up to 256 KiB written since the last call. Returns false if there is nothing new.
  bool read(const StreamDecoder::Put& put);
  // For readers from the beginning: returns the bytes of the log before the present piece, with the
  // dropped ones. Call this within `put`.
  std::uint64_t at() const { return decoder_.at(); }
  std::optional<Progress> progress() const;
  // Forgets the progress of a process that was killed.
  void drop_progress() const;
  // Returns true once if output was lost because this reader was too slow.
  bool take_gap();

 private:
  bool read_some(const StreamDecoder::Put& put);
  bool open_next();
  bool is_file(const std::string& path) const;

  std::string cluster_;
  std::vector<std::string> paths_;  // the oldest part first
  io::Fd file_;
  StreamDecoder decoder_;
  bool begun_ = false;  // some of this course's output was read
  bool gap_ = false;
  std::vector<char> buffer_;
};

// Returns when the log was last written, as Unix time in milliseconds; nullopt: there is none.
std::optional<std::int64_t> log_written_ms(const std::string& cluster);

}  // namespace lockstep::jobs::rented
