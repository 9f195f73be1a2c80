// Merges the traces that Kineto wrote for several ranks into one for Perfetto. Traces may have
// hundreds of megabytes, so they are never held whole: events pass through as they are, but for the
// few values that must differ from rank to rank. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::status {

// Later traces have no room: Perfetto's process ids have 31 bits.
inline constexpr int kMostMergedTraces = 200;

// The bytes before the first event of the first trace, and those after the last event.
std::string_view merged_head();
// base: as MergedTrace::base() of the traces; "": none has one.
std::string merged_tail(const std::string& base);

// Rewrites the trace of one rank as a part of the merged trace.
class MergedTrace {
 public:
  // place: counts the traces, from 0. first: no event stands before this trace's.
  MergedTrace(int rank, int place, bool first) : rank_(rank), place_(place), first_(first) {}

  // Reads the next bytes, and appends events to `out`. Returns false once the bytes are no trace.
  bool feed(std::string_view bytes, std::string& out);
  // Returns whether the bytes were one whole trace. Otherwise nothing of it may be used.
  bool is_whole() const { return !bad_ && closed_ && saw_events_; }
  bool has_events() const { return !first_; }
  // Returns the time from which the events count, in nanoseconds since 1970. "": since 1970 itself.
  const std::string& base() const { return base_; }

 private:
  static constexpr int kMostDepth = 64;
  enum class In { structure, text, scalar };

  // What JSON allows at this place. first_*: or the end of an empty object or array.
  enum class Next { name, first_name, colon, value, first_value, comma };

  bool take(char c, std::string& out);
  bool take_in_text(char c, std::string& out);
  bool take_in_scalar(char c);
  bool begin(char c);
  bool separate(char c, std::string& out);
  bool open(char c, std::string& out);
  bool shut(char c, std::string& out);
  void token_ends(std::string& out);
  bool is_value_of(int depth, std::string_view key) const;
  bool wants_change() const;
  std::string changed() const;
  void put(std::string_view bytes, std::string& out) const;

  int rank_;
  int place_;
  bool first_;
  bool bad_ = false;
  bool closed_ = false;  // the outermost object
  bool saw_events_ = false;
  bool in_events_ = false;
  In in_ = In::structure;
  bool escaped_ = false;  // a backslash stands before the next byte of the text
  int hex_left_ = 0;      // digits of a \u that must follow
  int depth_ = 0;
  bool object_[kMostDepth + 1] = {};  // by depth: an object, not an array
  Next next_ = Next::value;
  std::string keys_[5];  // by depth: the last name
  std::string token_;    // the text or scalar being read, if it is short
  bool token_long_ = false;
  std::string event_name_;
  std::string base_;
};

}  // namespace lockstep::status
