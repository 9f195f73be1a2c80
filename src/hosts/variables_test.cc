#include "hosts/variables.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <fstream>

namespace lockstep::hosts {
namespace {

using Entries = std::vector<std::string>;

std::optional<std::string> own(const std::string& name) {
  if (name == "HERE") return "mine";
  if (name == "EMPTY") return "";
  if (name == "LONG") return std::string(200'000, 'x');
  return std::nullopt;
}

TEST(EnvFile, IsReadAsDockerReadsIt) {
  const auto entries = parse_env_file(
      "\xEF\xBB\xBF# comment\n\nA=1\r\n  B= x \"y\" # no comment \n\t# "
      "comment\nC=a=b\nHERE\nNOT_HERE\n"
      "EMPTY\nD=\nA=2",
      own);
  ASSERT_TRUE(entries);
  EXPECT_EQ(*entries,
            (Entries{"A=2", "B= x \"y\" # no comment ", "C=a=b", "HERE=mine", "EMPTY=", "D="}));
}

TEST(EnvFile, BadLinesAreNamedWithoutTheirValues) {
  for (const char* line : {"=hidden", "A B=hidden", "export A=hidden", "A\x01=hidden"}) {
    const auto entries = parse_env_file("X=1\n" + std::string(line), own);
    ASSERT_FALSE(entries) << line;
    EXPECT_NE(entries.error().message.find("line 2"), std::string::npos);
    EXPECT_EQ(entries.error().message.find("hidden"), std::string::npos);
  }
  EXPECT_FALSE(parse_env_file(std::string("A=x\0y", 5), own));
}

std::string refusal(const GivenVariables& given) {
  const auto entries = variables_of(given, own);
  return entries ? "" : entries.error().message;
}

TEST(GivenVariables, SecretsComeBeforeEnvAndEnvBeforeFiles) {
  char path[] = "/tmp/lockstep_env_XXXXXX";
  ASSERT_GE(mkstemp(path), 0);
  std::ofstream(path) << "A=file\nB=file\nHERE=file\n";
  const auto entries = variables_of(
      {.env = {"B=1", "B=2", "HERE=env", "NOT_HERE"}, .files = {path}, .secrets = {"HERE"}}, own);
  unlink(path);
  ASSERT_TRUE(entries);
  EXPECT_EQ(*entries, (Entries{"A=file", "B=2", "HERE=mine"}));
}

TEST(GivenVariables, WhatMakesNoSenseIsNamed) {
  EXPECT_EQ(refusal({.secrets = {"NOT_HERE"}}), "--secret NOT_HERE: the variable is not set here");
  const std::string given = refusal({.secrets = {"TOKEN=hidden"}});
  EXPECT_NE(given.find("--secret TOKEN=..."), std::string::npos);
  EXPECT_EQ(given.find("hidden"), std::string::npos);
  EXPECT_EQ(refusal({.env = {"A B=x"}}), "--env: 'A B' is not a valid variable name");
  EXPECT_EQ(refusal({.env = {"=x"}}), "--env: '' is not a valid variable name");
  EXPECT_EQ(refusal({.secrets = {""}}), "--secret: '' is not a valid variable name");
  EXPECT_NE(refusal({.secrets = {"LONG"}}).find("128 KiB"), std::string::npos);
  EXPECT_NE(refusal({.files = {"/nowhere"}}).find("/nowhere"), std::string::npos);
  EXPECT_EQ(refusal({.secrets = {"EMPTY"}}), "");
}

}  // namespace
}  // namespace lockstep::hosts
