#include "rendezvous/etcd/etcd_access.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {

using codec::RdzvEndpoint;

TEST(EtcdAccess, Endpoints) {
  const auto one = parse_etcd_access("node1", {});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->endpoints, std::vector<RdzvEndpoint>({{"node1", 2379}}));
  EXPECT_FALSE(one->https);
  const auto three = parse_etcd_access("https://a:1, https://[::1]:2/ ,https://c", {});
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_EQ(three->endpoints, std::vector<RdzvEndpoint>({{"a", 1}, {"::1", 2}, {"c", 2379}}));
  EXPECT_TRUE(three->https);
  EXPECT_FALSE(parse_etcd_access("http://a,https://b", {}));
  EXPECT_FALSE(parse_etcd_access("a:b", {}));
  EXPECT_FALSE(parse_etcd_access("https:///", {{"protocol", "ftp"}}));
}

TEST(EtcdAccess, Conf) {
  const auto v2 = parse_etcd_access(
      "a", {{"protocol", " HTTPS "}, {"ssl_cert", "c"}, {"ssl_cert_key", "k"}, {"ca_cert", "a"}});
  ASSERT_TRUE(v2);
  EXPECT_TRUE(v2->https);
  EXPECT_EQ(v2->tls.cert_file + v2->tls.key_file + v2->tls.ca_file, "cka");
  const auto legacy = parse_etcd_access("a", {{"cert", "c"}, {"key", "k"}, {"cacert", "a"}});
  ASSERT_TRUE(legacy);
  EXPECT_EQ(legacy->tls.cert_file + legacy->tls.key_file + legacy->tls.ca_file, "cka");
  const auto patient = parse_etcd_access("a", {{"read_timeout", "60"}});
  ASSERT_TRUE(patient);
  EXPECT_EQ(patient->timeout, std::chrono::seconds(60));
  EXPECT_FALSE(parse_etcd_access("a", {{"read_timeout", "0"}}));
  EXPECT_FALSE(parse_etcd_access("a", {{"user", "u"}}));
  EXPECT_FALSE(parse_etcd_access("a", {{"password_file", "/dev/null"}}));
}

}  // namespace
}  // namespace lockstep::rendezvous
