// The client's side of `--guard HOST`: requests to the guard on another host over ssh, and the
// guard's answers. A host is an ssh target, or a cluster of one node.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "hosts/host_link.h"
#include "rent/guard_talk.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::rent {

// Remembers the last answer for each rental. A host that did not answer is not asked again for 30
// s, except where the answer matters.
class GuardHosts {
 public:
  enum class Word {
    nothing,  // the guard was not asked
    guards,
    started,  // the guard did not run there and was started again
    over,     // the guard has terminated the machines
    refuses,  // the host does not guard the machines; trouble_of() says why
    silent,   // the host was not reached
  };

  // owner: the id of this installation. stop_fd: readable when the user wants to stop.
  GuardHosts(std::string owner, int stop_fd) : owner_(std::move(owner)), stop_fd_(stop_fd) {}

  // Call before renting. Checks that the host can be reached without a password prompt, has working
  // credentials for these providers, and has the right time. The answer has the host's public
  // address as CIDR if with_address is set.
  Result<GuardAnswer> agree(const std::string& host, const std::vector<std::string>& providers,
                            bool with_address);

  // Tells the guard the current state of a rental. Returns no error if nothing is left for that
  // guard to terminate.
  Status tell(const cloud::Rental& rental, GuardNewsKind kind);
  // Like tell(), but retries a host that does not answer up to three times.
  Status insist(const cloud::Rental& rental);

  // Returns the place of a host of --guard. invalid_input: that host cannot be a guard.
  static Result<hosts::HostPlace> place_of(const std::string& host);

  Word word_of(const cloud::Rental& rental) const;
  // Returns why the host refuses or was not reached, as one line.
  std::string trouble_of(const cloud::Rental& rental) const;

 private:
  struct Heard {
    Word word = Word::nothing;
    Error trouble = {};
  };
  struct LastFailure {
    Error why = {};
    std::chrono::steady_clock::time_point at = {};
  };

  static Heard hear(const cloud::Rental& rental, const Result<GuardAnswer>& answer);
  Result<GuardAnswer> say(const std::string& host, std::vector<std::string> words,
                          std::string input, std::chrono::seconds patience);

  std::string owner_;
  int stop_fd_;
  std::map<std::string, Heard> heard_;         // by rental id
  std::map<std::string, LastFailure> silent_;  // by host, for all rentals
};

}  // namespace lockstep::rent
