// English stems (Snowball's English algorithm, which the index was grouped by): only for words that are not in the
// index, to find the forms of them that are.

const stemOf = (() => {
  const EXCEPTIONS = {
    skis: "ski", skies: "sky", idly: "idl", gently: "gentl", ugly: "ugli", early: "earli", only: "onli", singly: "singl",
    sky: "sky", news: "news", howe: "howe", atlas: "atlas", cosmos: "cosmos", bias: "bias", andes: "andes",
  };
  const KEPT = /^(inning|outing|evening|canning|herring|earring|proceed|exceed|succeed)$/;
  const STEP_2 = [
    ["ization", "ize"], ["ational", "ate"], ["fulness", "ful"], ["ousness", "ous"], ["iveness", "ive"],
    ["tional", "tion"], ["biliti", "ble"], ["lessli", "less"], ["entli", "ent"], ["ation", "ate"], ["alism", "al"],
    ["aliti", "al"], ["ousli", "ous"], ["iviti", "ive"], ["fulli", "ful"], ["ogist", "og"], ["enci", "ence"],
    ["anci", "ance"], ["abli", "able"], ["izer", "ize"], ["ator", "ate"], ["alli", "al"], ["bli", "ble"],
    ["ogi", "og"], ["li", ""],
  ];
  const STEP_3 = [
    ["ational", "ate"], ["tional", "tion"], ["alize", "al"], ["icate", "ic"], ["iciti", "ic"], ["ative", ""],
    ["ical", "ic"], ["ness", ""], ["ful", ""],
  ];
  const STEP_4 = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic",
  ];

  return function stem(word) {
    if (word.length < 3 || !/^[a-z]+$/.test(word)) return word;
    if (Object.hasOwn(EXCEPTIONS, word)) return EXCEPTIONS[word];
    word = word.replace(/^y/, "Y").replace(/([aeiouy])y/g, "$1Y");
    const r1 = firstRegion(word);
    const r2 = region(word, r1);
    word = step1a(word);
    if (KEPT.test(word)) return word;
    word = step1c(step1b(word, r1));
    word = step3(step2(word, r1), r1, r2);
    return step5(step4(word, r2), r1, r2).toLowerCase();
  };

  function firstRegion(word) {
    const prefix = /^(gener|commun|arsen|past|univers|later|emerg|organ|inter)/.exec(word);
    return prefix ? prefix[0].length : region(word, 0);
  }

  function region(word, from) {
    const match = /[aeiouy][^aeiouy]/.exec(word.slice(from));
    return match ? from + match.index + 2 : word.length;
  }

  function isShort(stem) {
    return /[^aeiouy][aeiouy][^aeiouywxY]$/.test(stem) || /^[aeiouy][^aeiouy]$/.test(stem) || stem === "past";
  }

  function step1a(word) {
    if (word.endsWith("sses")) return word.slice(0, -2);
    if (/ie[ds]$/.test(word)) return word.length > 4 ? word.slice(0, -2) : word.slice(0, -1);
    if (/(us|ss)$/.test(word)) return word;
    if (/[aeiouy].+s$/.test(word)) return word.slice(0, -1);
    return word;
  }

  function step1b(word, r1) {
    const eed = /(eed|eedly)$/.exec(word);
    if (eed) return eed.index >= r1 ? word.slice(0, eed.index) + "ee" : word;
    const ending = /(ed|edly|ing|ingly)$/.exec(word);
    if (!ending || !/[aeiouy]/.test(word.slice(0, ending.index))) return word;
    const rest = word.slice(0, ending.index);
    if (ending[0] === "ing" && /^[^aeiouy]y$/.test(rest)) return rest.slice(0, -1) + "ie";
    if (/(at|bl|iz)$/.test(rest)) return rest + "e";
    if (/^[aeo](bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(rest)) return rest;
    if (/(bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(rest)) return rest.slice(0, -1);
    return r1 >= rest.length && isShort(rest) ? rest + "e" : rest;
  }

  function step1c(word) {
    return /.[^aeiouy][yY]$/.test(word) ? word.slice(0, -1) + "i" : word;
  }

  function step2(word, r1) {
    const rule = STEP_2.find(([ending]) => word.endsWith(ending));
    if (!rule || word.length - rule[0].length < r1) return word;
    const rest = word.slice(0, -rule[0].length);
    if (rule[0] === "ogi" && !rest.endsWith("l")) return word;
    if (rule[0] === "li" && !/[cdeghkmnrt]$/.test(rest)) return word;
    return rest + rule[1];
  }

  function step3(word, r1, r2) {
    const rule = STEP_3.find(([ending]) => word.endsWith(ending));
    if (!rule || word.length - rule[0].length < (rule[0] === "ative" ? Math.max(r1, r2) : r1)) return word;
    return word.slice(0, -rule[0].length) + rule[1];
  }

  function step4(word, r2) {
    const ending = STEP_4.find((one) => word.endsWith(one));
    if (!ending || word.length - ending.length < r2) return word;
    const rest = word.slice(0, -ending.length);
    return ending === "ion" && !/[st]$/.test(rest) ? word : rest;
  }

  function step5(word, r1, r2) {
    const last = word.length - 1;
    if (word.endsWith("e")) return last >= r2 || (last >= r1 && !isShort(word.slice(0, -1))) ? word.slice(0, -1) : word;
    return word.endsWith("ll") && last >= r2 ? word.slice(0, -1) : word;
  }
})();
