// The client's side of guards on other machines (`--guard HOST`): what is told them over ssh, and
// what was heard. A host is what the user would write for ssh, or a cluster of one node.
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

class GuardHosts {
 public:
  enum class Word {
    nothing,  // was not asked
    guards,
    started,  // it guards again: its guard there did not run
    over,     // it has ended the machines
    refuses,  // nobody guards them there: the trouble says why
    silent,   // it was not reached
  };

  // owner: this installation. stop_fd: readable when the user wants to stop.
  GuardHosts(std::string owner, int stop_fd) : owner_(std::move(owner)), stop_fd_(stop_fd) {}

  // Before anything is rented: that the host is reached without a question, has keys of these
  // providers that work, and the right time. With its public address as CIDR, where that is asked.
  Result<GuardAnswer> agree(const std::string& host, const std::vector<std::string>& providers,
                            bool with_address);

  // A rental of ours, as it is now. No error where nothing of it is left for a guard elsewhere.
  Status tell(const cloud::Rental& rental, GuardNewsKind kind);
  // The same for words that are worth waiting for the host a while: it is asked again.
  Status insist(const cloud::Rental& rental);

  // A word about a job that it watches.
  Result<WatchAnswer> watch(const std::string& host, const WatchWord& word);
  static Result<hosts::HostPlace> place_of(const std::string& host);

  Word word_of(const cloud::Rental& rental) const;
  // Why it refuses, or was not reached: one line.
  std::string trouble_of(const cloud::Rental& rental) const;

 private:
  struct Heard {
    Word word = Word::nothing;
    Error trouble = {};
  };
  struct Silence {
    Error why = {};
    std::chrono::steady_clock::time_point at = {};
  };

  static Heard hear(const cloud::Rental& rental, const Result<GuardAnswer>& answer);
  Result<GuardAnswer> say(const std::string& host, std::vector<std::string> words,
                          std::string input, std::chrono::seconds patience);

  std::string owner_;
  int stop_fd_;
  std::map<std::string, Heard> heard_;     // by the rental's id
  std::map<std::string, Silence> silent_;  // by host, whosever rentals it was asked about
};

}  // namespace lockstep::rent
