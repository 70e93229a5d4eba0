// The predicate language: docs/guide/scan.md has the grammar.
#include <algorithm>
#include <cctype>

#include "scan/predicate.h"

namespace grebe::scan {
namespace {

// Parentheses and NOTs within each other: deeper text is no question of a person.
constexpr int kDepthMax = 200;

enum class TokenKind { kEnd, kName, kQuotedName, kText, kNumber, kHex, kSymbol };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  size_t position = 0;
};

bool IsNameByte(char c, bool first) {
  const auto byte = static_cast<unsigned char>(c);
  if (std::isalpha(byte) || c == '_' || byte >= 0x80) return true;
  return !first && (std::isdigit(byte) || c == '$');
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool EqualsNoCase(std::string_view text, std::string_view upper) {
  return std::ranges::equal(text, upper, [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == b;
  });
}

constexpr std::string_view kKeywords[] = {"AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "NAN",
                                          "LIKE", "TRUE", "FALSE"};

std::string Shown(std::string_view text) {
  constexpr size_t kShownMax = 40;
  return std::string(text.substr(0, kShownMax)) + (text.size() > kShownMax ? "..." : "");
}

Status Refuse(std::string_view what, const Token& at) {
  return InvalidArgument(what, "position", at.position, "at",
                         at.kind == TokenKind::kEnd ? "the end" : Shown(at.text));
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
      Token token;
      token.position = at_;
      if (at_ == text_.size()) {
        tokens.push_back(std::move(token));
        return tokens;
      }
      ARROW_RETURN_NOT_OK(Next(&token));
      tokens.push_back(std::move(token));
    }
  }

 private:
  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  Status Next(Token* token) {
    const char c = text_[at_];
    if ((c == 'x' || c == 'X') && Peek(1) == '\'') {   // X'00ff'
      ++at_;
      ARROW_RETURN_NOT_OK(Quoted('\'', token));
      token->kind = TokenKind::kHex;
      token->text.insert(0, "0x");
      return Status::OK();
    }
    if (IsNameByte(c, true)) {
      token->kind = TokenKind::kName;
      while (at_ < text_.size() && IsNameByte(text_[at_], false)) token->text += text_[at_++];
      return Status::OK();
    }
    if (c == '"') {
      token->kind = TokenKind::kQuotedName;
      return Quoted('"', token);
    }
    if (c == '\'') {
      token->kind = TokenKind::kText;
      return Quoted('\'', token);
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number(token);
    token->kind = TokenKind::kSymbol;
    for (const std::string_view symbol : {"==", "!=", "<>", "<=", ">="}) {
      if (text_.substr(at_).starts_with(symbol)) {
        token->text = symbol;
        at_ += 2;
        return Status::OK();
      }
    }
    token->text = c;
    if (std::string_view("=<>(),.+-").find(c) == std::string_view::npos) {
      return Refuse("a character that has no meaning here", *token);
    }
    ++at_;
    return Status::OK();
  }

  // A quote within is written twice.
  Status Quoted(char quote, Token* token) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        if (at_ >= text_.size() || text_[at_] != quote) return Status::OK();
      }
      token->text += text_[at_];
    }
    return Refuse("a quote that is not closed", *token);
  }

  Status Number(Token* token) {
    token->kind = TokenKind::kNumber;
    if (Peek(0) == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      token->kind = TokenKind::kHex;
      token->text = "0x";
      for (at_ += 2; std::isxdigit(static_cast<unsigned char>(Peek(0))); ++at_) {
        token->text += text_[at_];
      }
    } else {
      while (IsDigit(Peek(0)) || Peek(0) == '.') token->text += text_[at_++];
      const bool exponent = (Peek(0) == 'e' || Peek(0) == 'E') &&
                            (IsDigit(Peek(1)) || ((Peek(1) == '+' || Peek(1) == '-') &&
                                                  IsDigit(Peek(2))));
      if (exponent) {
        token->text += text_[at_++];
        token->text += text_[at_++];
        while (IsDigit(Peek(0))) token->text += text_[at_++];
      }
    }
    if (at_ < text_.size() && IsNameByte(text_[at_], false)) {
      token->text += text_[at_];
      return Refuse("not a number", *token);
    }
    return Status::OK();
  }

  std::string_view text_;
  size_t at_ = 0;
};

AtomOp Flipped(AtomOp op) {
  switch (op) {
    case AtomOp::kLess: return AtomOp::kGreater;
    case AtomOp::kLessEqual: return AtomOp::kGreaterEqual;
    case AtomOp::kGreater: return AtomOp::kLess;
    case AtomOp::kGreaterEqual: return AtomOp::kLessEqual;
    default: return op;
  }
}

std::optional<AtomOp> ComparisonOf(const Token& token) {
  if (token.kind != TokenKind::kSymbol) return std::nullopt;
  if (token.text == "=" || token.text == "==") return AtomOp::kEqual;
  if (token.text == "!=" || token.text == "<>") return AtomOp::kNotEqual;
  if (token.text == "<") return AtomOp::kLess;
  if (token.text == "<=") return AtomOp::kLessEqual;
  if (token.text == ">") return AtomOp::kGreater;
  if (token.text == ">=") return AtomOp::kGreaterEqual;
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<PredicateNode> Run() {
    ARROW_ASSIGN_OR_RAISE(PredicateNode root, Or(false, 0));
    if (Now().kind != TokenKind::kEnd) return Refuse("expected AND, OR or the end", Now());
    return root;
  }

 private:
  using NodeResult = Result<PredicateNode>;

  const Token& Now() const { return tokens_[at_]; }
  bool IsKeyword(std::string_view word) const {
    return Now().kind == TokenKind::kName && EqualsNoCase(Now().text, word);
  }
  bool IsSymbol(std::string_view symbol) const {
    return Now().kind == TokenKind::kSymbol && Now().text == symbol;
  }
  bool TakeKeyword(std::string_view word) {
    if (!IsKeyword(word)) return false;
    ++at_;
    return true;
  }
  bool TakeSymbol(std::string_view symbol) {
    if (!IsSymbol(symbol)) return false;
    ++at_;
    return true;
  }

  // `negated`: a NOT outside, to be pushed down; it makes an OR of an AND.
  NodeResult Or(bool negated, int depth) { return Chain("OR", negated, depth); }
  NodeResult And(bool negated, int depth) { return Chain("AND", negated, depth); }

  NodeResult Chain(std::string_view word, bool negated, int depth) {
    const bool is_or = word == "OR";
    PredicateNode chain;
    chain.kind = is_or != negated ? PredicateNode::Kind::kOr : PredicateNode::Kind::kAnd;
    do {
      ARROW_ASSIGN_OR_RAISE(auto part, is_or ? And(negated, depth) : Not(negated, depth));
      Append(std::move(part), &chain);
    } while (TakeKeyword(word));
    if (chain.children.size() == 1) return std::move(chain.children[0]);
    return chain;
  }

  static void Append(PredicateNode part, PredicateNode* chain) {
    if (part.kind != chain->kind) {
      chain->children.push_back(std::move(part));
      return;
    }
    for (PredicateNode& child : part.children) chain->children.push_back(std::move(child));
  }

  NodeResult Not(bool negated, int depth) {
    if (depth > kDepthMax) return Refuse("nested too deeply", Now());
    if (TakeKeyword("NOT")) return Not(!negated, depth + 1);
    if (TakeSymbol("(")) {
      ARROW_ASSIGN_OR_RAISE(auto inner, Or(negated, depth + 1));
      if (!TakeSymbol(")")) return Refuse("expected )", Now());
      return inner;
    }
    return Atom(negated);
  }

  NodeResult Atom(bool negated) {
    PredicateNode atom;
    atom.negated = negated;
    atom.position = Now().position;
    if (StartsLiteral()) {   // 5 < x
      ARROW_ASSIGN_OR_RAISE(Literal value, TakeLiteral());
      const auto op = ComparisonOf(Now());
      if (!op) return Refuse("expected a comparison", Now());
      ++at_;
      ARROW_ASSIGN_OR_RAISE(atom.column, Column());
      atom.op = Flipped(*op);
      atom.values.push_back(std::move(value));
      return atom;
    }
    ARROW_ASSIGN_OR_RAISE(atom.column, Column());
    if (const auto op = ComparisonOf(Now())) {
      ++at_;
      atom.op = *op;
      ARROW_ASSIGN_OR_RAISE(Literal value, TakeLiteral());
      atom.values.push_back(std::move(value));
      return atom;
    }
    return Test(std::move(atom));
  }

  // What follows a column that no comparison follows.
  NodeResult Test(PredicateNode atom) {
    if (TakeKeyword("IS")) {
      if (TakeKeyword("NOT")) atom.negated = !atom.negated;
      if (TakeKeyword("NULL")) {
        atom.op = AtomOp::kIsNull;
      } else if (TakeKeyword("NAN")) {
        atom.op = AtomOp::kIsNaN;
      } else {
        return Refuse("expected NULL or NAN", Now());
      }
      return atom;
    }
    const bool has_not = TakeKeyword("NOT");
    if (has_not) atom.negated = !atom.negated;
    if (TakeKeyword("IN")) return In(std::move(atom));
    if (TakeKeyword("BETWEEN")) return Between(std::move(atom));
    if (TakeKeyword("LIKE")) {
      atom.op = AtomOp::kLike;
      ARROW_ASSIGN_OR_RAISE(Literal pattern, TakeLiteral());
      if (pattern.kind != Literal::Kind::kText) {
        return InvalidArgument("LIKE takes a pattern in quotes", "position", pattern.position);
      }
      atom.values.push_back(std::move(pattern));
      return atom;
    }
    if (has_not) return Refuse("expected IN, BETWEEN or LIKE", Now());
    atom.op = AtomOp::kIsTrue;
    return atom;
  }

  NodeResult In(PredicateNode atom) {
    atom.op = AtomOp::kIn;
    if (!TakeSymbol("(")) return Refuse("expected (", Now());
    do {
      ARROW_ASSIGN_OR_RAISE(Literal value, TakeLiteral());
      atom.values.push_back(std::move(value));
    } while (TakeSymbol(","));
    if (!TakeSymbol(")")) return Refuse("expected , or )", Now());
    return atom;
  }

  NodeResult Between(PredicateNode atom) {
    ARROW_ASSIGN_OR_RAISE(Literal low, TakeLiteral());
    if (!TakeKeyword("AND")) return Refuse("expected AND", Now());
    ARROW_ASSIGN_OR_RAISE(Literal high, TakeLiteral());
    PredicateNode both;
    both.kind = atom.negated ? PredicateNode::Kind::kOr : PredicateNode::Kind::kAnd;
    atom.op = AtomOp::kGreaterEqual;
    atom.values = {std::move(low)};
    both.children.push_back(atom);
    atom.op = AtomOp::kLessEqual;
    atom.values = {std::move(high)};
    both.children.push_back(std::move(atom));
    return both;
  }

  bool StartsLiteral() const {
    switch (Now().kind) {
      case TokenKind::kText:
      case TokenKind::kNumber:
      case TokenKind::kHex: return true;
      case TokenKind::kSymbol: return IsSymbol("-") || IsSymbol("+");
      case TokenKind::kName:
        return IsKeyword("TRUE") || IsKeyword("FALSE") || IsKeyword("NULL") || StartsTypedText();
      default: return false;
    }
  }
  // DATE '2026-01-01': the word says what the column's type says anyway.
  bool StartsTypedText() const {
    return (IsKeyword("DATE") || IsKeyword("TIME") || IsKeyword("TIMESTAMP")) &&
           tokens_[at_ + 1].kind == TokenKind::kText;
  }

  Result<Literal> TakeLiteral() {
    Literal out;
    out.position = Now().position;
    if (StartsTypedText()) ++at_;
    if (TakeKeyword("NULL")) return out;
    if (IsKeyword("TRUE") || IsKeyword("FALSE")) {
      out.kind = Literal::Kind::kBool;
      out.text = IsKeyword("TRUE") ? "true" : "false";
      ++at_;
      return out;
    }
    if (IsSymbol("-") || IsSymbol("+")) {
      out.text = Now().text;
      ++at_;
      if (Now().kind != TokenKind::kNumber) return Refuse("expected a number", Now());
    }
    switch (Now().kind) {
      case TokenKind::kNumber: out.kind = Literal::Kind::kNumber; break;
      case TokenKind::kText:
      case TokenKind::kHex: out.kind = Literal::Kind::kText; break;
      case TokenKind::kName:
      case TokenKind::kQuotedName:
        return Refuse("expected a value; text stands in 'single quotes'", Now());
      default: return Refuse("expected a value", Now());
    }
    out.text += Now().text;
    ++at_;
    return out;
  }

  Result<std::string> Column() {
    std::string path;
    while (true) {
      const bool keyword = Now().kind == TokenKind::kName &&
                           std::ranges::any_of(kKeywords, [&](std::string_view word) {
                             return EqualsNoCase(Now().text, word);
                           });
      if ((Now().kind != TokenKind::kName && Now().kind != TokenKind::kQuotedName) ||
          (keyword && path.empty())) {
        return Refuse("expected a column", Now());
      }
      path += Now().text;
      ++at_;
      if (!TakeSymbol(".")) return path;
      path += '.';
    }
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
};

void CollectColumns(const PredicateNode& node, std::vector<std::string>* out) {
  if (node.kind == PredicateNode::Kind::kAtom) {
    if (std::ranges::find(*out, node.column) == out->end()) out->push_back(node.column);
    return;
  }
  for (const PredicateNode& child : node.children) CollectColumns(child, out);
}

}  // namespace

Result<Predicate> Predicate::Parse(std::string_view text) {
  ARROW_ASSIGN_OR_RAISE(auto tokens, Lexer(text).Run());
  Predicate out;
  ARROW_ASSIGN_OR_RAISE(out.root_, Parser(std::move(tokens)).Run());
  CollectColumns(out.root_, &out.columns_);
  return out;
}

}  // namespace grebe::scan
