#include "cloud/key_pair.h"

#include "codec/base64.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::cloud {
namespace {

namespace fs = std::filesystem;

class KeyPairFiles : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  static std::string made_folder() {
    std::string name = fs::temp_directory_path() / "lockstep-keys-XXXXXX";
    return mkdtemp(name.data());
  }
  // Returns the output of one of OpenSSH's own programs for a file.
  std::string said_by(const std::string& command) const {
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    std::string out;
    for (int c = 0; (c = fgetc(pipe)) != EOF;)
      out += static_cast<char>(c);
    pclose(pipe);
    return out;
  }

  std::string folder_ = made_folder();
  std::string path_ = folder_ + "/a/b/login";
};

TEST_F(KeyPairFiles, OpenSshReadsThePrivateKeyAndFindsThePublicOne) {
  const auto pair = keep_key_pair(path_, "lockstep-user");
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(said_by("ssh-keygen -y -f " + path_), pair->public_line + "\n");
  EXPECT_NE(said_by("ssh-keygen -lf " + path_ + ".pub").find("(ED25519)"), std::string::npos);
}

TEST_F(KeyPairFiles, ArePrivateAndStay) {
  const auto first = keep_key_pair(path_, "c");
  ASSERT_TRUE(first);
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(stat((folder_ + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  const auto again = keep_key_pair(path_, "c");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->private_text, first->private_text);
  EXPECT_EQ(again->public_line, first->public_line);
  remove_key_pair(path_);
  EXPECT_TRUE(fs::is_empty(folder_ + "/a/b"));
  const auto next = keep_key_pair(path_, "c");
  ASSERT_TRUE(next);
  EXPECT_NE(next->private_text, first->private_text);
}

TEST(KeyPair, IsPaddedToWholeBlocksWhateverTheComment) {
  for (const char* comment : {"", "a", "ab", "abc", "abcd", "abcdefgh"}) {
    const KeyPair pair =
        key_pair_text(std::string(32, 's'), std::string(32, 'p'), 0x01020304, comment);
    std::string coded = pair.private_text;
    coded = coded.substr(coded.find('\n') + 1);
    coded = coded.substr(0, coded.find("-----END"));
    std::erase(coded, '\n');
    const auto bytes = codec::base64_decode(coded);
    ASSERT_TRUE(bytes);
    EXPECT_TRUE(bytes->starts_with(std::string("openssh-key-v1\0", 15)));
    // The parts before the padded part: magic, "none" twice, "", 1, the public half and the length.
    EXPECT_EQ((bytes->size() - (15 + 8 + 8 + 4 + 4 + 4 + 51 + 4)) % 8, 0U) << comment;
    EXPECT_NE(bytes->find(std::string("\x01\x02\x03\x04\x01\x02\x03\x04")), std::string::npos);
  }
}

TEST(KeyPair, IsNewEachTime) {
  const auto one = new_key_pair("c");
  const auto other = new_key_pair("c");
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->public_line, other->public_line);
}

}  // namespace
}  // namespace lockstep::cloud
