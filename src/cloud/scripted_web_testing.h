// For tests of the providers: a Web with answers from the test. The clock stands still, apart from
// pauses, which take no real time.
#pragma once

#include "cloud/web.h"

#include <algorithm>
#include <utility>

namespace lockstep::cloud::testing {

// Makes an answer to a question that was sent completely.
inline Reply answered(int status, std::string body, std::vector<http::Field> fields = {}) {
  http::Answer answer;
  answer.head.status = status;
  answer.head.fields = std::move(fields);
  answer.body = std::move(body);
  return {.answer = std::move(answer), .sent = true};
}

// Makes a lost answer. sent: the server may have understood the question.
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
  // Runs the jobs in the order of the list, so that a test sees their questions in that order.
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

  // Returns the number of questions with this text in target or body.
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
