// Watches the metadata service of a machine that the provider may take away at any time.
#pragma once

#include "base/error.h"
#include "http/client.h"
#include "io/loop.h"
#include "machine/lease_terms.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::machine {

class NoticeWatch {
 public:
  // on_notice: called once, with words for the user: "terminate 2026-11-23T06:00:00Z". base:
  // "http://HOST"; empty: the address that all metadata services share.
  static Result<std::unique_ptr<NoticeWatch>> open(io::Loop& loop, NoticeSource source,
                                                   const std::string& base,
                                                   std::function<void(std::string)> on_notice);
  NoticeWatch(const NoticeWatch&) = delete;
  NoticeWatch& operator=(const NoticeWatch&) = delete;

 private:
  NoticeWatch(io::Loop& loop, NoticeSource source, http::Origin origin,
              std::function<void(std::string)> on_notice);
  void ask();
  void ask_token();
  void ask_action();
  void ask_change();
  void take_change(const http::Answer& answer);
  void later();
  void tell(std::string words);

  NoticeSource source_;
  std::function<void(std::string)> on_notice_;
  http::Client client_;
  std::unique_ptr<http::Exchange> exchange_;
  std::string token_;
  std::string etag_;  // ETag of the last answer
  io::Timer turn_;
};

// Returns the words for an answer of AWS's service ("terminate TIME"). Empty: unreadable. Pure.
std::string action_words(std::string_view body);

}  // namespace lockstep::machine
