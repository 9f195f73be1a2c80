#include "page/page_html.h"

#include <gtest/gtest.h>

namespace lockstep::page {
namespace {

TEST(PageHtml, IsOneWholeSmallFile) {
  const std::string html = page_html();
  EXPECT_LT(html.size(), 80U << 10);
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  EXPECT_EQ(html.find("{{"), std::string::npos);
  EXPECT_NE(html.find("</script>"), std::string::npos);
  // The policy allows exactly the text between the tags.
  EXPECT_NE(html.find("<script>" + std::string(page_script()) + "</script>"), std::string::npos);
  EXPECT_NE(html.find("<style>" + std::string(page_style()) + "</style>"), std::string::npos);
}

TEST(PageHtml, AsksNoOtherServerAndNeverMakesHtmlOfText) {
  const std::string html = page_html();
  for (const char* forbidden :
       {"src=", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacent", "document.write",
        "eval(", "style=\"", "onclick="})
    EXPECT_EQ(html.find(forbidden), std::string::npos) << forbidden;
  std::size_t at = html.find("://");
  for (; at != std::string::npos; at = html.find("://", at + 1))
    EXPECT_EQ(html.compare(at - 4, 25, "http://www.w3.org/2000/sv"), 0) << html.substr(at - 8, 60);
}

TEST(PageHtml, ThePolicyNamesTheHashes) {
  const std::string policy = page_policy();
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'sha256-"));
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::page
