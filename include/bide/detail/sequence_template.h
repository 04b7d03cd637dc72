/* The functions of sequence.h for one type; see there. */

#define F_(name) BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)

#define HALF_ ((BIDE_SEQUENCE)((BIDE_SEQUENCE)((BIDE_SEQUENCE)-1) / 2 + 1))

BIDE_INLINE BIDE_SEQUENCE F_(_initial)(void)
{
    return (BIDE_SEQUENCE)-1;
}

BIDE_INLINE BIDE_SEQUENCE F_(_distance)(BIDE_SEQUENCE a, BIDE_SEQUENCE b)
{
    BIDE_SEQUENCE ahead = (BIDE_SEQUENCE)(b - a);
    return ahead <= HALF_ ? ahead : 0;
}

BIDE_INLINE bool F_(_precedes)(BIDE_SEQUENCE a, BIDE_SEQUENCE b)
{
    /* ahead - 1 wraps for ahead == 0, which does not precede. */
    return (BIDE_SEQUENCE)(b - a - 1) < HALF_;
}

BIDE_INLINE BIDE_SIGNED_OF_(BIDE_SEQUENCE_BITS) F_(_difference)(BIDE_SEQUENCE a, BIDE_SEQUENCE b)
{
    BIDE_SEQUENCE ahead = (BIDE_SEQUENCE)(a - b);
    typedef BIDE_SIGNED_OF_(BIDE_SEQUENCE_BITS) signed_type;
    if (ahead < HALF_)
        return (signed_type)ahead;
    if (ahead == HALF_)
        return (signed_type)(HALF_ - 1);
    /* -(distance behind), in a way that stays within the signed type */
    return (signed_type)(-(signed_type)((BIDE_SEQUENCE)-1 - ahead) - 1);
}

#undef F_
#undef HALF_
