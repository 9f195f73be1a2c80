// For tests of the providers: a Web whose answers the test makes. Time stands still but for
// pauses, which take none.
#pragma once

#include "cloud/web.h"

#include <algorithm>
#include <utility>

namespace lockstep::cloud::testing {

// The last byte of the question was sent, and this came back.
inline Reply answered(int status, std::string body, std::vector<http::Field> fields = {}) {
  http::Answer answer;
  answer.head.status = status;
  answer.head.fields = std::move(fields);
  answer.body = std::move(body);
  return {.answer = std::move(answer), .sent = true};
}

// No answer. sent: it may have been understood all the same.
inline Reply unanswered(bool sent, Errc code = Errc::unavailable,
                        std::string message = "no answer") {
  return {.answer = fail(code, std::move(message)), .sent = sent};
}

class ScriptedWeb : public Web {
 public:
  using Script = std::function<Reply(const Question&)>;

  explicit ScriptedWeb(Script script) : script_(std::move(script)) {}

  Reply ask(const Question& question) override {
    asked.push_back(question);
    return script_(question);
  }
  // One after the other, so that a test sees them in the order of the list.
  void at_once(const std::vector<std::function<void(Web&)>>& jobs) override {
    for (const auto& job : jobs)
      job(*this);
  }
  std::int64_t now_ms() const override { return now; }
  Status pause(std::chrono::milliseconds time) override {
    if (pauses_left-- <= 0) return fail(Errc::canceled, "the test has seen enough pauses");
    pauses.push_back(time);
    now += time.count();
    return {};
  }

  // How many questions had this text in target or body.
  std::size_t count(std::string_view text) const {
    return static_cast<std::size_t>(
        std::count_if(asked.begin(), asked.end(), [text](const Question& question) {
          return question.body.find(text) != std::string::npos ||
                 question.target.find(text) != std::string::npos;
        }));
  }

  std::int64_t now = 1'800'000'000'000;
  int pauses_left = 1000;
  std::vector<std::chrono::milliseconds> pauses;
  std::vector<Question> asked;

 private:
  Script script_;
};

}  // namespace lockstep::cloud::testing
