#include "cloud/shown_question.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

TEST(ShownQuestion, SecretsAreSizes) {
  Question question;
  question.base = "https://ec2.us-east-1.amazonaws.com";
  question.fields = {{"authorization", "AWS4 secret"}};
  question.body =
      "Action=RunInstances&ClientToken=t1&UserData=I2Nsb3Vk&Long=" + std::string(200, 'x');
  EXPECT_EQ(shown_question(question),
            "POST https://ec2.us-east-1.amazonaws.com/ "
            "Action=RunInstances&ClientToken=t1&UserData=(8 bytes)&Long=(200 bytes)");
  question = {};
  question.method = "GET";
  question.base = "https://cloudbilling.googleapis.com";
  question.target = "/v1/skus?key=AIza&pageSize=5000&flag";
  EXPECT_EQ(shown_question(question),
            "GET https://cloudbilling.googleapis.com/v1/skus?key=(4 bytes)&pageSize=5000&flag");
}

TEST(ShownQuestion, JsonToo) {
  Question question;
  question.base = "https://a";
  const std::string start = "{\"name\":\"ls-1\",\"n\":2,\"list\":[\"a\"],";
  question.body = start +
                  "\"user_data\":\"#cloud\",\"env\":{\"API_KEY\":\"k1\"},\"items\":[{\"x\":\"" +
                  std::string(300, 'k') + "\"}]}";
  EXPECT_EQ(shown_question(question),
            "POST https://a/ " + start +
                "\"user_data\":\"(6 bytes)\",\"env\":{\"API_KEY\":\"(2 bytes)\"},"
                "\"items\":[{\"x\":\"(300 bytes)\"}]}");
  question.body = "\x01\x02";
  EXPECT_EQ(shown_question(question), "POST https://a/ (2 bytes)");
  question.body = "a=\x1b[0m";
  EXPECT_EQ(shown_question(question), "POST https://a/ a=\\x1b[0m");
}

}  // namespace
}  // namespace lockstep::cloud
